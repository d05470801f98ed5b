const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
  hourCycle: "h23",
});
const count = new Intl.NumberFormat(undefined);

/** `14:03:12`, with the date unless it is today. */
export function timeOf(ms: number, nowMs = Date.now()): string {
  const date = new Date(ms);
  return day.format(date) === day.format(nowMs) ? clock.format(date) : moment.format(date);
}

export function momentOf(ms: number): string {
  return moment.format(new Date(ms));
}

export function countOf(value: number): string {
  return count.format(value);
}

/** `850 ms`, `12 s`, `3 min`, `5 h` or `2 d`, with a no-break space. */
export function durationOf(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole}${nbsp}ms`;
  const seconds = Math.round(whole / 1_000);
  if (seconds < 100) return `${seconds}${nbsp}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes}${nbsp}min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours}${nbsp}h` : `${Math.round(hours / 24)}${nbsp}d`;
}

const nbsp = "\u00a0";

export function bytesOf(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  return bytes < 1_048_576
    ? `${Math.round(bytes / 1_024)} KiB`
    : `${(bytes / 1_048_576).toFixed(1)} MiB`;
}

/** `one event`, `3 events`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return number === 1 ? `one ${one}` : `${countOf(number)} ${many}`;
}

/** `insufficient_funds` as `insufficient funds`. */
export function words(code: string): string {
  return code.replaceAll("_", " ");
}
