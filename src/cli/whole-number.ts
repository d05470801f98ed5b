import { wrongUsage } from "./command-error.ts";

/** Reads the value of an option. @throws CommandError */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw wrongUsage(`${JSON.stringify(text)} is not a whole number above 0`);
}
