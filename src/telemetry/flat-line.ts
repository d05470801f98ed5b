import type { SpanIds } from "./tracing/tracing.ts";

/**
 * The line that pino would write for a record of only strings, numbers and booleans, at a fraction
 * of pino's cost; every call's record is one. Such values need no redaction. Undefined for any
 * other record (messages and errors among them): pino must write it.
 * @param opening start of the line: level, time and the logger's bindings
 */
export function flatLine(
  opening: string,
  ids: SpanIds | undefined,
  record: unknown,
  message: unknown,
): string | undefined {
  if (typeof message !== "string" || typeof record !== "object" || record === null)
    return undefined;
  if (Object.getPrototypeOf(record) !== Object.prototype) return undefined;
  let line = opening;
  if (ids && !("trace_id" in record || "span_id" in record)) {
    line += `,"trace_id":"${ids.trace_id}","span_id":"${ids.span_id}"`;
  } else if (ids) {
    return undefined;
  }
  const fields = record as Readonly<Record<string, unknown>>;
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined) continue;
    // pino treats `err` and `msg` specially, and `$typeName` marks a protobuf message.
    if (name === "err" || name === "msg" || name === "$typeName") return undefined;
    switch (typeof value) {
      case "string":
        line += memberStart(name) + quoted(value);
        break;
      case "boolean":
        line += `${memberStart(name)}${value}`;
        break;
      case "number":
        line += `${memberStart(name)}${Number.isFinite(value) ? value : null}`;
        break;
      default:
        return undefined;
    }
  }
  return `${line},"msg":${quoted(message)}}\n`;
}

const starts = new Map<string, string>();
/** Bound of the cache: more field names than the code has. */
const maxNames = 1_000;

/** The text before a field's value, cached since the same names recur. */
function memberStart(name: string): string {
  let start = starts.get(name);
  if (start === undefined) {
    start = `,${quoted(name)}:`;
    if (starts.size < maxNames) starts.set(name, start);
  }
  return start;
}

/** Most strings need no escaping, and the check is cheaper than a call of `JSON.stringify`. */
function quoted(text: string): string {
  return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const needsEscape = /["\\\u0000-\u001f\u007f\ud800-\udfff]/;
