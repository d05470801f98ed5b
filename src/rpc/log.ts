/**
 * Where the edge writes its records; a pino logger is one. Errors are given whole, as `err`: what of
 * them is fit for a log, the logger decides.
 */
export interface Log {
  debug(record: object, message: string): void;
  info(record: object, message: string): void;
  warn(record: object, message: string): void;
  error(record: object, message: string): void;
}
