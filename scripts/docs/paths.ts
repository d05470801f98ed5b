/**
 * Checks that each file and folder that a documentation page names in `code` exists, so that no
 * page keeps the path of a moved file. A path may begin at the root (`src/core/watch.ts`), in `src`
 * (`core/watch.ts`) or at the page, and may be a pattern (`proto/payments/v1/*.proto`).
 *
 *   node scripts/docs/paths.ts [page ...]
 */
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { marked, type Tokens } from "marked";
import { pages } from "./pages.ts";

// Written by npm and the first start, and not there in every clone.
const topFolders = new Set([...foldersOf(".")].filter((name) => name !== "node_modules"));
const rooms = foldersOf("src");

const named = process.argv.length > 2 ? process.argv.slice(2) : pages();
const missing = named.flatMap((page) =>
  pathsOf(readFileSync(page, "utf8"))
    .filter((path) => !exists(path, dirname(page)))
    .map((path) => `${page}: ${path}`),
);
if (missing.length > 0) {
  console.error("pages name files that are not there:");
  for (const one of missing) console.error(`  ${one}`);
  process.exitCode = 1;
}

function pathsOf(text: string): string[] {
  const found: string[] = [];
  marked.walkTokens(marked.lexer(text), (token) => {
    if (token.type !== "codespan") return;
    const code = (token as Tokens.Codespan).text;
    const [first = "", ...rest] = code.split("/");
    if (rest.length === 0 || !/^[\w./*-]+$/.test(code)) return;
    if (topFolders.has(first) || (rooms.has(first) && /\.\w+$/.test(code))) found.push(code);
  });
  return found;
}

/** Whether the path exists, relative to the root, to `src` or to the page's folder. */
function exists(path: string, folder: string): boolean {
  return [path, `src/${path}`, join(folder, path)].some((one) =>
    one.includes("*") ? globSync(one).length > 0 : existsSync(one),
  );
}

function foldersOf(folder: string): ReadonlySet<string> {
  const entries = readdirSync(folder, { withFileTypes: true });
  return new Set(entries.filter((entry) => entry.isDirectory()).map(({ name }) => name));
}
