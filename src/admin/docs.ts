import { existsSync, readFileSync } from "node:fs";

/** The documentation of this version, if it is installed beside the code. */
const folder = new URL("../../docs/", import.meta.url);

/** Path of its first page; undefined if it is not installed. */
export const docsPath = existsSync(new URL("README.md", folder)) ? "/docs/README.md" : undefined;

/** A page as text, such as that of `/docs/operations.md`; undefined if there is none. */
export function docsPage(path: string): string | undefined {
  const [, name] = /^\/docs\/([\w-]+\.md)$/.exec(path) ?? [];
  const file = name === undefined ? undefined : new URL(name, folder);
  return file && existsSync(file) ? readFileSync(file, "utf8") : undefined;
}
