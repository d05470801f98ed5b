import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { placesOf } from "../cli/run.ts";
import { commandLine } from "../command-line.ts";
import { freePorts } from "../gateway/spawn.ts";
import { serve } from "../listen.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { directory as emptyDirectory } from "../stores/sqlite/directories.ts";
import { timeoutMs } from "../until.ts";
import { stepsOf } from "./command-lines.ts";
import { codeBlocks } from "./markdown.ts";

test("the page of the command line shows what its commands print", async (t) => {
  const shell = await openShell(t);
  const blocks = (await codeBlocks("docs/cli.md")).filter(({ lang }) => !lang);
  const steps = blocks.flatMap(({ text }) => stepsOf(text));
  assert.ok(steps.length >= 25, `${steps.length} commands`);
  const isListening = ({ line }: { line: string }) => /payments-gateway listen/.test(line);
  const isCheck = ({ line }: { line: string }) => /payments-gateway check$/.test(line);

  // As in terminals of their own: they print what the commands after them cause.
  const listeners = steps
    .filter(isListening)
    .map((step) => ({ step, run: shell.start(step.line) }));
  await listeners[0]?.run.prints("listening to");
  for (const step of steps) {
    if (isListening(step) || isCheck(step)) continue;
    assertShown(step, await shell.start(step.line).ended);
  }
  for (const { step, run } of listeners) {
    const shown = rowsOf(step.shown).filter((row) => row !== "…");
    for (const row of shown) if (!row.startsWith("go on behind")) await run.prints(row);
    // The others end by themselves, at their `--limit`.
    if (step.shown.includes("go on behind")) run.interrupt();
    const printed = rowsOf(await run.ended);
    assert.deepEqual(
      shown.filter((row) => !printed.includes(row)),
      [],
      step.line,
    );
  }
  // `check` is meant for the time before the start; here it runs last, since it needs files that
  // other commands make.
  for (const step of steps.filter(isCheck)) assertShown(step, await shell.start(step.line).ended);
});

function assertShown({ line, shown }: { line: string; shown: string }, printed: string): void {
  const wanted = rowsOf(shown);
  const got = rowsOf(printed);
  // The page leaves out the output behind a last row of `…`.
  if (wanted.at(-1) === "…") got.splice(wanted.length - 1, got.length, "…");
  assert.deepEqual(got, wanted, line);
}

/** The rows of a text, in which each value that differs from run to run is replaced by its kind. */
function rowsOf(text: string): string[] {
  const kinds: readonly (readonly [RegExp, string])[] = [
    [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>"],
    [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, "<uuid>"],
    [/[\da-f]{18}-[\da-f]{8}/g, "<cursor>"],
    [/trigger-[\da-f]{8}/g, "<made-up id>"],
    [/\/3ds\/[\da-f]{48}/g, "<page>"],
    [/^pgw_[\w-]{43}$/gm, "<key>"],
    [/"sha256":"[\da-f]{64}"/g, "<hash>"],
    [/eyJ[\w.-]+…?/g, "<token>"],
    [/\(\d+ ms\)/g, "<duration>"],
    // The resolver of the machine decides which of the two is reported.
    [/EAI_AGAIN/g, "ENOTFOUND"],
  ];
  const same = kinds.reduce((t, [pattern, kind]) => t.replaceAll(pattern, kind), text);
  return same.split("\n").filter((row) => row !== "");
}

interface Run {
  /** Resolves when it has printed a row that begins with `row`. */
  prints(row: string): Promise<void>;
  interrupt(): void;
  /** All that it printed, with the ports that the page shows. */
  readonly ended: Promise<string>;
}

/** A terminal in a directory of its own, with a gateway that was just started. */
async function openShell(t: TestContext) {
  const gateway = closing(t, await startTestGateway());
  const local = createServer((request, response) => request.resume() && response.end());
  const localUrl = await serve(t, local);
  const directory = emptyDirectory(t);
  const npx = `#!/bin/sh\nshift\nexec '${process.execPath}' '${commandLine}' "$@"\n`;
  await writeFile(join(directory, "npx"), npx);
  await chmod(join(directory, "npx"), 0o755);

  const places = [
    ["http://127.0.0.1:4000", gateway.publicUrl],
    ["http://127.0.0.1:4001", gateway.rpcUrl],
    ["http://127.0.0.1:4002", gateway.adminUrl],
    ["http://127.0.0.1:4010", gateway.sandboxUrl ?? ""],
    ["http://127.0.0.1:3000", localUrl],
  ] as const;
  const callbackUrl = `${gateway.publicUrl}/callbacks/default/payments`;
  const { PUBLIC_ADDR, RPC_ADDR, ADMIN_ADDR, SANDBOX_ADDR } = freePorts;
  const env = {
    ...{ PUBLIC_ADDR, RPC_ADDR, ADMIN_ADDR, SANDBOX_ADDR },
    ...placesOf(gateway),
    PATH: `${directory}:${process.env.PATH}`,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  };
  const begun: ChildProcess[] = [];
  t.after(async () => {
    for (const { exitCode, signalCode, pid } of begun) {
      if (exitCode === null && signalCode === null) process.kill(-pid!, "SIGKILL");
    }
  });
  const asShown = (text: string) =>
    places.reduce((all, [shown, real]) => all.replaceAll(real, shown), text);

  return {
    start(line: string): Run {
      const command = places
        .reduce((all, [shown, real]) => all.replaceAll(shown, real), line)
        // The one address that no environment variable sets.
        .replace(/trigger callback\.\w+$/, `$& --callback-url ${callbackUrl}`);
      const child = spawn("bash", ["-c", `exec 2>&1\n${command}`], {
        cwd: directory,
        env,
        detached: true,
        stdio: ["ignore", "pipe", "inherit"],
        timeout: 2 * timeoutMs,
      });
      begun.push(child);
      let printed = "";
      child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        printed += chunk;
      });
      const closed = once(child, "close");
      return {
        async prints(row) {
          while (!rowsOf(asShown(printed)).some((one) => one.startsWith(row))) {
            await Promise.race([
              once(child.stdout, "data"),
              closed.then(() => assert.fail(`${line} does not print ${row}:\n${printed}`)),
            ]);
          }
        },
        interrupt: () => process.kill(-child.pid!, "SIGINT"),
        ended: closed.then(() => asShown(printed)),
      };
    },
  };
}
