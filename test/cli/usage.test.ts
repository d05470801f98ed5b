import assert from "node:assert/strict";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { commands } from "../../src/cli/program.ts";
import { version } from "../../src/version.ts";
import { run } from "./resident.ts";
import { start } from "./run.ts";

test("the command line names its commands and exit codes", async () => {
  for (const args of [["help"], ["--help"]]) {
    const { code, out } = await run(args);
    assert.equal(code, 0);
    for (const name of Object.keys(commands)) assert.match(out, new RegExp(`^ {2}${name} `, "m"));
    assert.match(out, /Exit codes:/);
  }
  assert.equal((await run(["--version"])).out, `${version}\n`);
});

for (const [line, words] of [
  ["", /Usage:/],
  ["dance", /unknown command 'dance'/],
  ["help dance", /unknown command 'dance'/],
  ["serve now", /too many arguments for 'serve'[\s\S]*see: payments-gateway help serve/],
  ["sign", /missing required argument 'file'/],
  ["sign nowhere.json", /nowhere.json cannot be read \(ENOENT\)/],
  ["verify - ", /required option '--signature <header>'/],
  ["listen --kind refund", /Allowed choices are payment, payout/],
  ["listen --url nowhere", /"nowhere" is not an http or https URL/],
  [
    "listen --url http://u:canary@127.0.0.1",
    /^error: a URL has no user name and no password here$/m,
  ],
  [
    "listen --account счёт",
    /--account <name>' argument 'счёт' is invalid. Accepted is a name of letters/,
  ],
  ["listen --limit 0", /--limit <n>' argument '0' is invalid. Accepted is a whole number from 1/],
  ["trigger", /name an event/],
  ["trigger dance", /there is no event "dance": payment.success, /],
  ["trigger payment.success --amount 1e3", /not a decimal/],
  ["token --external-id a --ttl 25h", /'25h' is invalid. Accepted is .*, at most 24h/],
  ["payments --state paid gone", /Allowed choices are pending, authorized, paid, /],
  ["payouts --since yesterday", /'yesterday' is invalid. Accepted is .*, such as 500ms/],
  ["keys", /Usage: payments-gateway keys/],
  ["keys new --name shop --scopes ,", /scopes at least one/],
  ["dead-letters replay", /give an id, or --all/],
  ["dead-letters replay a --all", /give an id, or --all/],
  ["dead-letters discard", /missing required argument 'id'/],
  ["dead-letters list --limit few", /'few' is invalid. Accepted is a whole number/],
] as const) {
  test(`\`${line}\` ends with 64, and says what is wrong`, async () => {
    const { code, out, err } = await run(line.split(" ").filter(Boolean));
    assert.equal(code, 64);
    assert.match(err, words);
    assert.equal(out, "");
  });
}

test("a command ends quietly when its output is closed", async () => {
  const child = start(["trigger", "--list"]);
  child.stdout?.destroy();
  const [said, [code]] = await Promise.all([text(child.stderr!), once(child, "close")]);
  assert.deepEqual([code, said], [0, ""]);
});

test("output outside a terminal has colours only with FORCE_COLOR", async () => {
  const colour = /\u001b\[/;
  assert.doesNotMatch((await run(["trigger", "--list"])).out, colour);
  assert.match((await run(["trigger", "--list"], { env: { FORCE_COLOR: "1" } })).out, colour);
  const both = { NO_COLOR: "1", TERM: "xterm" };
  assert.doesNotMatch((await run(["trigger", "--list"], { env: both })).out, colour);
});
