import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { marked, type Tokens } from "marked";
import { parseAllDocuments } from "yaml";
import { pages } from "../../scripts/docs/pages.ts";
import { commands } from "../../src/cli/program.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { codeBlocks, root, tokensOf } from "./markdown.ts";

describe("the pages", () => {
  it("link to files and headings that exist", async () => {
    const broken: string[] = [];
    for (const page of pages()) {
      for (const href of await linksOf(page)) {
        if (/^[a-z]+:/.test(href)) continue;
        const [path = "", anchor] = href.split("#");
        const target = path === "" ? page : relative(root, join(root, dirname(page), path));
        if (!existsSync(join(root, target))) broken.push(`${page}: ${href}`);
        else if (anchor && !(await anchorsOf(target)).has(anchor)) broken.push(`${page}: ${href}`);
      }
    }
    assert.deepEqual(broken, []);
  });

  it("are each reached from the README", async () => {
    const reached = new Set(["README.md"]);
    for (const page of reached) {
      for (const href of await linksOf(page)) {
        const path = href.split("#")[0] ?? "";
        if (!/^[a-z]+:/.test(path) && path.endsWith(".md")) {
          reached.add(relative(root, join(root, dirname(page), path)));
        }
      }
    }
    assert.deepEqual(
      pages().filter((page) => !reached.has(page)),
      [],
    );
  });

  it("of the command line has a row for each command", async () => {
    const text = await readFile(join(root, "docs/cli.md"), "utf8");
    const rows = text.split("\n").filter((line) => line.startsWith("|"));
    const missing = Object.keys(commands).filter(
      (name) => !rows.some((row) => row.includes(`\`${name}`)),
    );
    assert.deepEqual(missing, []);
  });

  it("say of each dependency what to watch in an update", async () => {
    const page = await readFile(join(root, "docs/taking-over.md"), "utf8");
    const named = page
      .split("\n")
      .flatMap((line) => line.split("|")[1]?.match(/(?<=`)[^`]+(?=`)/g) ?? []);
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
      await readFile(join(root, "package.json"), "utf8"),
    );
    const all = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
    const isNamed = (name: string) =>
      named.some((one) => one === name || one === name.replace(/\/.*/, "/*"));
    assert.deepEqual(
      all.filter((name) => !isNamed(name)),
      [],
    );
  });

  it("show JSON and YAML that parse", async () => {
    for (const page of pages()) {
      for (const { lang, text } of await codeBlocks(page)) {
        if (lang === "json") assert.doesNotThrow(() => JSON.parse(text), `${page}:\n${text}`);
        if (lang !== "yaml") continue;
        for (const document of parseAllDocuments(text)) assert.deepEqual(document.errors, [], page);
      }
    }
  });

  it("show TypeScript that compiles", async (t) => {
    const folder = directory(t);
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    const files: string[] = [];
    for (const page of pages()) {
      for (const [i, { lang, text }] of (await codeBlocks(page)).entries()) {
        if (lang !== "ts" && lang !== "tsx") continue;
        const file = join(folder, `${page.replaceAll(/\W/g, "-")}-${i}.${lang}`);
        // `export {}` makes every block a module, even one that imports nothing.
        const here = text
          .replaceAll('from "./', `from "${join(root, dirname(page))}/`)
          // No workspace installs this package: its sources stand in for it.
          .replaceAll(
            /"@payments-gateway\/graphql(?:\/([\w-]+))?"/g,
            (_, name = "documents") => `"${join(root, "clients/graphql/src", name)}.ts"`,
          );
        await writeFile(file, `${here}\nexport {};\n`);
        files.push(file);
      }
    }
    assert.ok(files.length > 0);
    const options =
      "--ignoreConfig --noEmit --strict --skipLibCheck --jsx react-jsx --types node --allowImportingTsExtensions";
    const target = "--module nodenext --target es2024 --lib es2024,dom,dom.iterable";
    const args = `${options} ${target}`.split(" ");
    await promisify(execFile)(join(root, "node_modules/.bin/tsc"), [...args, ...files]).catch(
      ({ stdout }: { stdout: string }) => assert.fail(stdout),
    );
  });
});

async function linksOf(page: string): Promise<string[]> {
  const found: string[] = [];
  marked.walkTokens(await tokensOf(page), (token) => {
    if (token.type === "link" || token.type === "image") found.push((token as Tokens.Link).href);
  });
  return found;
}

/** The anchors that GitHub makes of the headings of a page. */
async function anchorsOf(page: string): Promise<Set<string>> {
  const found = new Set<string>();
  if (!page.endsWith(".md")) return found;
  marked.walkTokens(await tokensOf(page), (token) => {
    if (token.type !== "heading") return;
    const text = (token as Tokens.Heading).text.toLowerCase().replaceAll("`", "");
    found.add(text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-"));
  });
  return found;
}
