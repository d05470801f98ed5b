import { buffer } from "node:stream/consumers";
import { wrongUsage } from "./command-error.ts";
import { bytesOfFile } from "./secrets.ts";

/** The bytes of a file, or of standard input for `-`. @throws CommandError */
export async function bytesOf(file: string): Promise<Buffer> {
  if (file !== "-") return bytesOfFile(file);
  if (process.stdin.isTTY) throw wrongUsage("standard input is a terminal: give a file");
  return buffer(process.stdin);
}
