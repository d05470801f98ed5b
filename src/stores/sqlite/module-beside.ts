import { extname } from "node:path";

/** The URL of a module in the same folder, in source and compiled alike. */
export function moduleBeside(url: string, name: string): URL {
  return new URL(`./${name}${extname(url)}`, url);
}
