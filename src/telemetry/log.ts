import { type DestinationStream, type Logger, pino } from "pino";
import { loggable } from "./loggable.ts";
import { activeIds } from "./tracing/active-span.ts";

/**
 * The process's logger: one JSON record a line. Whatever it is given passes `loggable` first, so
 * that no record can hold a secret field of a message, a Secret or the text of a foreign error. While
 * calls are traced, records have `trace_id` and `span_id`.
 *
 * @param destination default: standard output
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // A new object each time: pino writes the record into it.
      mixin: () => ({ ...activeIds() }),
      hooks: {
        logMethod(args, write) {
          write.apply(this, safeArguments(args) as Parameters<typeof write>);
        },
      },
    },
    destination ?? pino.destination({ sync: true }),
  );
  const child: Logger["child"] = log.child;
  return Object.assign(log, {
    child(this: Logger, bindings: object, options?: object) {
      return child.call(this, loggable(bindings) as object, options as never);
    },
  }) as Logger;
}

/** An error given by itself becomes the record's `err`, and never the record's text. */
function safeArguments(args: readonly unknown[]): unknown[] {
  const [first, ...rest] = args.map(loggable);
  if (args[0] instanceof Error) {
    return [{ err: first }, ...(rest.length === 0 ? ["an error without a word"] : rest)];
  }
  const alone = rest.length === 0 && typeof first === "object" && first !== null;
  // Without a text, pino would take that of the error.
  return alone && "err" in first ? [first, "an error without a word"] : [first, ...rest];
}
