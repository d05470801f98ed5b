import { writeSync } from "node:fs";
import { type Logger, type LogLevel, logLevels, type WriteRecord } from "../report.ts";
import { loggable } from "./loggable.ts";
import { activeSpan } from "./tracing/tracing.ts";

/** Receives lines. */
interface Destination {
  write(text: string): void;
}

export type LogFormat = "json" | "text";

/**
 * The process's logger: one JSON record per line. Every record passes `loggable` first, so that
 * none holds a secret field of a message, a Secret or the message of a foreign error; records of
 * plain strings and numbers skip it, since it would not change them. Records of traced calls have
 * `trace_id` and `span_id`.
 *
 * @param destination default: standard output, written once per turn of the event loop, and at once
 * after an error record
 * @param format `text`: lines for a person instead. Default: what suits the destination
 */
export function createLogger(
  level: LogLevel,
  destination?: Destination,
  format: LogFormat = !destination && process.stdout.isTTY ? "text" : "json",
): Logger {
  const out = destination ?? stdoutOf();
  const writer = (name: LogLevel): WriteRecord => {
    if (logLevels.indexOf(name) < logLevels.indexOf(level)) return () => {};
    const isError = name === "error" || name === "fatal";
    return (about, message) => {
      const line =
        typeof about === "string" ? lineOf(name, {}, about) : lineOf(name, about, message);
      out.write(format === "json" ? line : readableLine(line));
      if (isError && !destination) stdoutOf().flush();
    };
  };
  const levels = ["debug", "info", "warn", "error", "fatal"] as const;
  return Object.fromEntries(levels.map((name) => [name, writer(name)])) as unknown as Logger;
}

function lineOf(level: string, about: object, message = "an error without a message"): string {
  const shown = isPlain(about) ? about : loggable(about instanceof Error ? { err: about } : about);
  const record = typeof shown === "object" ? shown : { about: shown };
  const ids = activeSpan.getStore()?.ids;
  const members = JSON.stringify(ids ? { ...ids, ...record } : record).slice(1, -1);
  const separator = members === "" ? "" : ",";
  return `{"level":"${level}"${isoTime()}${separator}${members},"msg":${JSON.stringify(message)}}\n`;
}

/** Whether a record has strings, numbers and booleans alone, as that of every call. */
function isPlain(record: object): boolean {
  if (Object.getPrototypeOf(record) !== Object.prototype) return false;
  const members = record as Readonly<Record<string, unknown>>;
  for (const name in members) {
    // It marks a protobuf message.
    if (name === "$typeName") return false;
    const type = typeof members[name];
    if (type !== "string" && type !== "number" && type !== "boolean" && type !== "undefined") {
      return false;
    }
  }
  return true;
}

let textOfSecond = "";
let secondMs = Number.NaN;

/** The time as a member. To format the whole date for every record would take longer. */
function isoTime(): string {
  const nowMs = Date.now();
  const ms = nowMs % 1_000;
  if (nowMs - ms !== secondMs) {
    secondMs = nowMs - ms;
    textOfSecond = new Date(secondMs).toISOString().slice(0, -"000Z".length);
  }
  return `,"time":"${textOfSecond}${String(ms).padStart(3, "0")}Z"`;
}

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

/** Quoted unless it is one plain word: a value must not pass for another, move the cursor or turn. */
function textOf(value: unknown): string {
  return typeof value === "string" && /^[\x21\x23-\x7e]+$/.test(value)
    ? value
    : JSON.stringify(value).replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "?");
}

let stdoutWriter: ReturnType<typeof createTurnWriter> | undefined;

/** One for all loggers, so that their lines stay in order. */
function stdoutOf(): ReturnType<typeof createTurnWriter> {
  if (!stdoutWriter) {
    stdoutWriter = createTurnWriter({ write: writeToStdout });
    process.on("exit", stdoutWriter.flush);
  }
  return stdoutWriter;
}

/** How long the process has waited for the reader of standard output since that last read. */
let behindMs = 0;
/** Whether the end of a line was lost. */
let isTorn = false;

/** Waits for a reader that is behind. What cannot be written is lost: the gateway serves on. */
function writeToStdout(text: string): void {
  let rest: Uint8Array = Buffer.from(isTorn ? `\n${text}` : text);
  const { length } = rest;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
      behindMs = 0;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || behindMs >= maxBehindMs) {
        isTorn ||= rest.length < length;
        return;
      }
      Atomics.wait(never, 0, 0, waitMs);
      behindMs += waitMs;
    }
  }
  isTorn = false;
}

const waitMs = 10;
const maxBehindMs = 1_000;
const never = new Int32Array(new SharedArrayBuffer(4));

/** Characters beyond which lines are written before the turn ends. */
const maxWaiting = 64 * 1024;

/**
 * Writes the lines of one turn of the event loop together at its end: a system call per line would
 * cost more than the line itself. `flush` writes what waits: call it before `process.exit`. A
 * process that ends by itself needs no flush.
 */
export function createTurnWriter(out: Destination): Destination & { flush(): void } {
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
