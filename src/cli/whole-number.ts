import { wrongUsage } from "./command-error.ts";

/** Parses an option's value as a whole number above 0. @throws CommandError */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw wrongUsage(`${JSON.stringify(text)} is not a whole number above 0`);
}
