import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { it } from "node:test";
import type { Tokens } from "marked";
import { ended, filledIn, type Ran } from "../cli/run.ts";
import { approve } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { codeBlocks, root } from "./markdown.ts";

const gateway = ofSuite(() => startTestGateway({ RECONCILE_AFTER: "1s" }));

it("the README's tour does what it shows", async () => {
  const blocks = await codeBlocks("README.md");
  const watchers: Promise<Ran>[] = [];
  let ran = 0;
  for (const [i, { lang, text }] of blocks.entries()) {
    if (lang !== "sh" || !/curl/.test(text)) continue;
    ran += 1;
    const shown = blocks[i + 1];
    // A command that runs until the payment is final runs beside the rest, as in another terminal.
    if (/curl -N|"until_final": true/.test(text)) {
      watchers.push(run(text));
      continue;
    }
    const { code, out, err } = await run(text);
    assert.equal(code, 0, `${text}\n${out}${err}`);
    if (shown?.lang === "json") assertShown(shown, out);
    else if (!shown?.lang) assertBegins(shown, out);
    const page = /"value":\s*"(http[^"]+)"/.exec(out)?.[1];
    if (page) await approve(page);
  }
  assert.ok(ran >= 8, `only ${ran} commands were run`);
  assert.ok(watchers.length >= 3);
  for (const { code, out, err } of await Promise.all(watchers)) {
    assert.equal(code, 0, out + err);
    assert.match(out, /SUCCESS/);
  }
});

/** Runs a block as a reader would paste it, with the ports of this gateway. */
function run(text: string): Promise<Ran> {
  const options = { cwd: root, timeout: timeoutMs };
  return ended(spawn("bash", ["-euc", filledIn(text, gateway)], options));
}

/** The README shows a part of the answer; `…` stands for what differs from run to run. */
function assertShown({ text }: Tokens.Code, output: string): void {
  const check = (shown: unknown, got: unknown, path: string): void => {
    if (typeof shown === "string" && shown.endsWith("…")) {
      assert.equal(typeof got, "string", path);
    } else if (Array.isArray(shown)) {
      assert.ok(Array.isArray(got), path);
      shown.forEach((each, i) => {
        check(each, got[i], `${path}[${i}]`);
      });
    } else if (shown !== null && typeof shown === "object") {
      for (const [key, value] of Object.entries(shown)) {
        check(value, (got as Record<string, unknown>)?.[key], `${path}.${key}`);
      }
    } else {
      assert.deepEqual(got, shown, path);
    }
  };
  check(JSON.parse(text), JSON.parse(output), "$");
}

function assertBegins(shown: Tokens.Code | undefined, output: string): void {
  // The output of a watch is shown behind the command that caused it: it is not this command's.
  if (shown === undefined || /^event: /m.test(shown.text)) return;
  const { text } = shown;
  const beginning = text.split("…")[0]?.trim() ?? "";
  assert.ok(output.startsWith(beginning), `${output}\ndoes not begin with\n${beginning}`);
}
