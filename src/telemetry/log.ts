import { type DestinationStream, type Logger, pino } from "pino";
import { flatLine } from "./flat-line.ts";
import { loggable } from "./loggable.ts";
import { activeIds } from "./tracing/active-span.ts";
import { createTurnWriter } from "./turn-writer.ts";

/**
 * The process's logger: one JSON record a line. Whatever it is given passes `loggable` first, so
 * that no record can hold a secret field of a message, a Secret or the text of a foreign error; a
 * record of plain texts and numbers has nothing that `loggable` would change. While calls are traced,
 * records have `trace_id` and `span_id`.
 *
 * @param destination default: standard output, once a turn of the event loop; errors at once
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const stdout = destination ? undefined : stdoutOf();
  const log = pino(
    {
      level,
      base: null,
      timestamp: isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // A new object each time: pino writes the record into it.
      mixin: () => ({ ...activeIds() }),
      hooks: {
        logMethod(args, write, number) {
          const [record, message] = args as unknown[];
          const line =
            args.length === 2 &&
            flatLine(openingOf(this as Logger, number), activeIds(), record, message);
          if (line) (this as unknown as Inside)[pino.symbols.streamSym].write(line);
          else write.apply(this, safeArguments(args) as Parameters<typeof write>);
          if (number >= errorLevel) stdout?.flush();
        },
      },
    },
    destination ?? (stdout as DestinationStream),
  );
  const child: Logger["child"] = log.child;
  return Object.assign(log, {
    child(this: Logger, bindings: object, options?: object) {
      return child.call(this, loggable(bindings) as object, options as never);
    },
  }) as Logger;
}

const errorLevel = 50;

let stdoutWriter: ReturnType<typeof createTurnWriter> | undefined;

/** One for all loggers, so that their lines stay in order. */
function stdoutOf(): ReturnType<typeof createTurnWriter> {
  if (!stdoutWriter) {
    stdoutWriter = createTurnWriter(pino.destination({ sync: true }));
    process.on("exit", stdoutWriter.flush);
  }
  return stdoutWriter;
}

/** What pino keeps of a logger: where it writes, and its bindings as text. */
interface Inside {
  readonly [pino.symbols.streamSym]: DestinationStream;
  readonly [pino.symbols.chindingsSym]: string;
}

/** What pino begins a logger's lines with. */
function openingOf(log: Logger, level: number): string {
  const bindings = (log as unknown as Inside)[pino.symbols.chindingsSym];
  return `{"level":"${log.levels.labels[level]}"${isoTime()}${bindings}`;
}

let textOfSecond = "";
let secondMs = Number.NaN;

/** As pino's own, which makes the whole text anew each time. */
function isoTime(): string {
  const nowMs = Date.now();
  const ms = nowMs % 1_000;
  if (nowMs - ms !== secondMs) {
    secondMs = nowMs - ms;
    textOfSecond = new Date(secondMs).toISOString().slice(0, -"000Z".length);
  }
  return `,"time":"${textOfSecond}${String(ms).padStart(3, "0")}Z"`;
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
