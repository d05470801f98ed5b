import type { SpanIds } from "./tracing/tracing.ts";

/**
 * A record whose fields are plain texts, numbers and booleans, as the line that pino makes of it,
 * at a fraction of its cost: what every call's record is. Of such values there is nothing to redact.
 * Undefined for any other record (messages and errors among them), which pino is left to write.
 * @param opening what the line begins with: level, time and the bindings of the logger
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
    // Those have a meaning of their own, to pino or as the mark of a message.
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
/** More names of fields than the code has. */
const maxNames = 1_000;

/** What stands before a field's value: names come again and again. */
function memberStart(name: string): string {
  let start = starts.get(name);
  if (start === undefined) {
    start = `,${quoted(name)}:`;
    if (starts.size < maxNames) starts.set(name, start);
  }
  return start;
}

/** Most texts need no escaping: looking is cheaper than a call of `JSON.stringify`. */
function quoted(text: string): string {
  return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const needsEscape = /["\\\u0000-\u001f\u007f\ud800-\udfff]/;
