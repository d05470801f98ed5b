import { type DestinationStream, type Logger, pino } from "pino";
import { loggable } from "./loggable.ts";
import { activeIds } from "./tracing/tracing.ts";

/**
 * The process's logger: one JSON record per line. Every argument passes `loggable` first, so that
 * no record holds a secret field of a message, a Secret or the message of a foreign error; records
 * of plain strings and numbers skip it, since it would not change them. Records of traced calls
 * have `trace_id` and `span_id`.
 *
 * @param destination default: standard output, written once per turn of the event loop, and at once
 * after an error record
 * @param format `text`: lines for a person at a terminal instead
 */
export function createLogger(
  level: string,
  destination?: DestinationStream,
  format: LogFormat = "json",
): Logger {
  const stdout = destination ? undefined : stdoutOf();
  const json = destination ?? (stdout as DestinationStream);
  const written =
    format === "json" ? json : { write: (line: string) => void json.write(readableLine(line)) };
  const log = pino(
    {
      level,
      base: null,
      timestamp: isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // What `loggable` made of an error stays as it is.
      serializers: { err: (error: unknown) => error },
      // A new object each time, since pino merges the record into it.
      mixin: () => ({ ...activeIds() }),
      hooks: {
        logMethod(args, write, number) {
          const [record, message] = args as unknown[];
          const line = args.length === 2 && plainLine(this as Logger, number, record, message);
          if (line) (this as unknown as Inside)[pino.symbols.streamSym].write(line);
          else write.apply(this, safeArguments(args) as Parameters<typeof write>);
          if (number >= errorLevel) stdout?.flush();
        },
      },
    },
    written,
  );
  const child: Logger["child"] = log.child;
  return Object.assign(log, {
    child(this: Logger, bindings: object, options?: object) {
      return child.call(this, loggable(bindings) as object, options as never);
    },
  }) as Logger;
}

export type LogFormat = "json" | "text";

/**
 * A log record as a line for a person at a terminal: time, level, message, and the rest as
 * `name=value`. The ready line keeps its place at the start of its line, since programs look for it.
 */
function readableLine(json: string): string {
  const { level, time, msg, ...rest } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const members = Object.entries(rest).map(([name, value]) => ` ${name}=${textOf(value)}`);
  const message = String(msg).replace(/\p{Cc}/gu, " ");
  const head = message.startsWith("ready ")
    ? message
    : `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${message}`;
  return `${head}${members.join("")}\n`;
}

/** Quoted unless it is one plain word: a value must not pass for another, or move the cursor. */
function textOf(value: unknown): string {
  return typeof value === "string" && /^[\x21\x23-\x7e]+$/.test(value)
    ? value
    : JSON.stringify(value).replace(/[\x7f-\x9f]/g, "?");
}

/** What LOG_FORMAT says, or what suits standard output. */
export function logFormatOf(asked: LogFormat | undefined): LogFormat {
  return asked ?? (process.stdout.isTTY ? "text" : "json");
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

/** The parts of pino's logger that are used here: its destination, and its bindings as text. */
interface Inside {
  readonly [pino.symbols.streamSym]: DestinationStream;
  readonly [pino.symbols.chindingsSym]: string;
}

let textOfSecond = "";
let secondMs = Number.NaN;

/** The same text as pino's own, which formats the whole date for every record. */
function isoTime(): string {
  const nowMs = Date.now();
  const ms = nowMs % 1_000;
  if (nowMs - ms !== secondMs) {
    secondMs = nowMs - ms;
    textOfSecond = new Date(secondMs).toISOString().slice(0, -"000Z".length);
  }
  return `,"time":"${textOfSecond}${String(ms).padStart(3, "0")}Z"`;
}

/** A lone error becomes the record's `err`; its message never becomes the record's message. */
function safeArguments(args: readonly unknown[]): unknown[] {
  const [first, ...rest] = args.map(loggable);
  if (args[0] instanceof Error) {
    return [{ err: first }, ...(rest.length === 0 ? ["an error without a word"] : rest)];
  }
  const alone = rest.length === 0 && typeof first === "object" && first !== null;
  // Without a message, pino would use the error's.
  return alone && "err" in first ? [first, "an error without a word"] : [first, ...rest];
}

/**
 * The line that pino would write for a record of only strings, numbers and booleans, at a fraction
 * of pino's cost; every call's record is one. Such values need no redaction. Undefined for any
 * other record (messages and errors among them): pino must write it.
 */
function plainLine(
  log: Logger,
  level: number,
  record: unknown,
  message: unknown,
): string | undefined {
  if (typeof message !== "string" || !isPlain(record)) return undefined;
  const bindings = (log as unknown as Inside)[pino.symbols.chindingsSym];
  const opening = `{"level":"${log.levels.labels[level]}"${isoTime()}${bindings}`;
  const ids = activeIds();
  const members = JSON.stringify(ids ? { ...ids, ...record } : record).slice(1, -1);
  const separator = members === "" ? "" : ",";
  return `${opening}${separator}${members},"msg":${JSON.stringify(message)}}\n`;
}

/** Whether a record has strings, numbers and booleans alone. */
function isPlain(record: unknown): record is object {
  if (typeof record !== "object" || record === null) return false;
  if (Object.getPrototypeOf(record) !== Object.prototype) return false;
  const members = record as Readonly<Record<string, unknown>>;
  for (const name in members) {
    const value = members[name];
    if (value === undefined) continue;
    // pino treats `err` and `msg` specially, and `$typeName` marks a protobuf message.
    if (name === "err" || name === "msg" || name === "$typeName") return false;
    const type = typeof value;
    if (type !== "string" && type !== "number" && type !== "boolean") return false;
  }
  return true;
}

/** Characters beyond which lines are written before the turn ends. */
const maxWaiting = 64 * 1024;

/**
 * Writes the lines of one turn of the event loop together at its end: a system call per line would
 * cost more than the line itself. `flush` writes what waits: call it before `process.exit`. A
 * process that ends by itself needs no flush.
 */
export function createTurnWriter(out: DestinationStream): DestinationStream & { flush(): void } {
  let lines = "";
  const flush = () => {
    if (lines === "") return;
    const text = lines;
    lines = "";
    out.write(text);
  };
  return {
    write(line) {
      if (lines === "") setImmediate(flush);
      lines += line;
      if (lines.length > maxWaiting) flush();
    },
    flush,
  };
}
