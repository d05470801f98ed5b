/**
 * A log record as a line for a person at a terminal: time, level, message, and the rest as
 * `name=value`. The ready line keeps its place at the start of its line, since programs look for it.
 */
export function readableLine(json: string): string {
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
