import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];
type Stream = typeof process.stdout | typeof process.stderr;

/** Colours a text if the stream is a terminal. NO_COLOR and FORCE_COLOR override that. */
export function paint(style: Style, text: string, stream: Stream = process.stdout): string {
  return styleText(style, text, { stream });
}

/** Prints a command's result to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints one JSON value as a line, for other programs. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

/** Prints a message that is not part of the result to standard error. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/**
 * Makes a text from outside safe to print: escapes characters that would move the terminal's
 * cursor, change its title or break the line.
 */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    const hex = character.codePointAt(0)?.toString(16) ?? "";
    return `\\u{${hex}}`;
  });
}

/** Control characters, and characters that change the text direction. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
