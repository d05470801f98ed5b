/** A variable is wrong or missing: its name, what it got (never a secret), what is accepted. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(variable: string, message: string) {
    super(`${variable}: ${message}`);
  }
}
