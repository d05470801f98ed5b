import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];
type Stream = typeof process.stdout | typeof process.stderr;

/** Colours a text for a stream that is a terminal; NO_COLOR and FORCE_COLOR are heeded. */
export function paint(style: Style, text: string, stream: Stream = process.stdout): string {
  return styleText(style, text, { stream });
}

/** The result of a command: to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One JSON value a line, for other programs. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

/** What is said beside the result: to standard error. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/**
 * A text from elsewhere as a terminal may show it: what would move its cursor, change its title or
 * break the line is written as an escape.
 */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    const hex = character.codePointAt(0)?.toString(16) ?? "";
    return `\\u{${hex}}`;
  });
}

/** Controls, and what turns the direction of the text. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Counts long work on a terminal's standard error; elsewhere it says nothing. */
export interface Progress {
  step(): void;
  end(): void;
}

export function startProgress(what: string, total: number): Progress {
  const stream = process.stderr;
  if (!stream.isTTY) return { step() {}, end() {} };
  let done = 0;
  const show = () => stream.write(`\r\u001b[K${what} ${done}/${total}`);
  show();
  return {
    step() {
      done += 1;
      show();
    },
    end: () => void stream.write("\r\u001b[K"),
  };
}
