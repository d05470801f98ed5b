/**
 * Receives the edge's log records; a pino logger implements it. Errors are passed whole as `err`:
 * the logger decides which parts of them may be logged.
 */
export interface Log {
  debug(record: object, message: string): void;
  info(record: object, message: string): void;
  warn(record: object, message: string): void;
  error(record: object, message: string): void;
}
