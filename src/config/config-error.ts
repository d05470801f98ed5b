/** Variables are wrong or missing: their names, what they got (never a secret), what is accepted. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Begin with the variable's name each; `message` has a line for each. */
  readonly mistakes: readonly string[];

  constructor(variable: string, message: string);
  constructor(mistakes: readonly string[]);
  constructor(given: string | readonly string[], message = "") {
    const mistakes = typeof given === "string" ? [`${given}: ${message}`] : given;
    super(mistakes.join("\n"));
    this.mistakes = mistakes;
  }
}
