import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { wrongUsage } from "./command-error.ts";
import { unreadable } from "./secrets.ts";

/** The bytes of a file, or of standard input for `-`. @throws CommandError */
export async function bytesOf(file: string): Promise<Buffer> {
  if (file !== "-") {
    try {
      return readFileSync(file);
    } catch (error) {
      throw unreadable(file, error);
    }
  }
  if (process.stdin.isTTY) throw wrongUsage("standard input is a terminal: give a file");
  return buffer(process.stdin);
}
