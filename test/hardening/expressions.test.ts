import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { test } from "node:test";
import { parse } from "acorn";

/**
 * Matches every regular expression of the code against long repetitions of the phrases in its pattern.
 * An expression that backtracks takes seconds for a text that fits into one message: one request
 * would block all others. The limit is on this process's CPU time, so other load on the machine
 * makes no difference.
 */

const root = new URL("../..", import.meta.url).pathname;
/** About the longest text that a caller may send, in characters. */
const longest = 256 * 1024;
/** Linear expressions take some milliseconds for the longest text. */
const allowedMs = 100;

interface Expression {
  readonly where: string;
  readonly source: RegExp;
}

function expressionsOf(file: string): Expression[] {
  const text = readFileSync(`${root}${file}`, "utf8");
  const found: Expression[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("regex" in node) {
      const { pattern, flags } = node.regex as { pattern: string; flags: string };
      found.push({ where: file, source: new RegExp(pattern, flags) });
    }
    for (const child of Object.values(node)) visit(child);
  };
  visit(parse(stripTypeScriptTypes(text), { ecmaVersion: "latest", sourceType: "module" }));
  return found;
}

/** The literal parts of a pattern, with one character for each of its classes. */
function phrasesOf({ source, flags }: RegExp): string[] {
  const samples = source
    .replace(/\(\?(?:[:=!]|<[=!]|<\w+>)/g, "(")
    .replace(/\\d/g, "7")
    .replace(/\\w|\\p\{\w+\}/g, "a")
    .replace(/\\s/g, " ")
    .replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
    .replace(/\\[SWDbB]/g, "x")
    .replace(/\\n/g, "\n")
    .replace(/\\r/g, "\r")
    .replace(/\\t/g, "\t")
    .replace(/\[\^[^\]]*\]/g, "~")
    .replace(/\[\\?([^\]])[^\]]*\]/g, "$1")
    .replace(/\{\d*,?\d*\}/g, "");
  const literals = samples.split(/(?<!\\)[()|*+?^$]+/).map((part) => part.replace(/\\(.)/g, "$1"));
  const whole = samples.replace(/(?<!\\)[()|*+?^$]/g, "").replace(/\\(.)/g, "$1");
  const common = ['\\"', "\\'", ...'"\\ \ta7{[,=%-/.\u00a0'];
  const phrases = [...literals, whole, ...common].filter((phrase) => phrase !== "");
  const pairs = literals.flatMap((one) => literals.map((other) => one + other));
  const folded = flags.includes("i") ? phrases.map((phrase) => phrase.toUpperCase()) : [];
  return [...new Set([...phrases, ...pairs.slice(0, 100), ...folded])].filter(Boolean);
}

/** Texts before and after the phrases, so that a match fails at its end. */
const frames: readonly (readonly [string, string])[] = [
  ["", ""],
  ["", "\u0000"],
  ["a", "!\n"],
];

/** Doubles texts and describes the first that takes too long; undefined if there is none. */
function tooSlow(expression: RegExp): string | undefined {
  for (const phrase of phrasesOf(expression)) {
    for (const [before, behind] of frames) {
      for (let length = 16; length <= longest; length *= 2) {
        const text = before + phrase.repeat(Math.ceil(length / phrase.length)) + behind;
        const startedMs = performance.now();
        matchAll(expression, text);
        const ms = performance.now() - startedMs;
        if (ms > allowedMs && cpuMs(() => matchAll(expression, text)) > allowedMs) {
          return `${JSON.stringify(phrase)} for ${text.length} characters: ${Math.round(ms)} ms`;
        }
        // Linear up to here: a text of twice the length takes twice the time.
        if (length >= 16_384 && ms < 1) break;
      }
    }
  }
  return undefined;
}

function matchAll(expression: RegExp, text: string): void {
  expression.lastIndex = 0;
  if (expression.sticky || !expression.global) expression.test(text);
  else text.replace(expression, "");
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const expressions = globSync("{src,devtools,sandbox}/**/*.ts", {
  cwd: root,
  exclude: ["src/gen/**", "*/test/**"],
}).flatMap(expressionsOf);

test("the expressions are found", () => {
  assert.ok(expressions.length > 100, `${expressions.length} expressions`);
});

for (const { where, source } of expressions) {
  test(`${where} ${source} takes time linear in the length of the text`, () => {
    assert.equal(tooSlow(source), undefined);
  });
}

test("the control: expressions that are known to be slow are found", () => {
  for (const slow of [/( cannot represent [^:]*): .*$/s, /("(?:[^"\\]|\\.)*"\s*:\s*)x/g, /\s+$/]) {
    assert.ok(tooSlow(slow), String(slow));
  }
});
