import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import type { Caller } from "../src/auth/caller.ts";
import type { Identify } from "../src/auth/identify.ts";
import { GatewayError } from "../src/errors.ts";

/** The outcomes of requests, by what is asked. */
export type Outcomes = Record<string, unknown>;

/** The answers differ little. */
const wideWindow = { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } };

/**
 * What was recorded in this file of `test/fixtures`. With RECORD_ANSWERS=true today's outcomes are
 * recorded instead.
 */
export function recorded(name: string) {
  const file = new URL(`fixtures/${name}.json.br`, import.meta.url);
  const records = process.env.RECORD_ANSWERS === "true";
  const known: Record<string, Outcomes> = records
    ? {}
    : JSON.parse(String(brotliDecompressSync(readFileSync(file))));
  return {
    save() {
      if (records) writeFileSync(file, brotliCompressSync(JSON.stringify(known), wideWindow));
    },
    /** Compares the outcomes of a group of requests with those recorded. */
    check(group: string, outcomes: Outcomes): void {
      const came: Outcomes = JSON.parse(JSON.stringify(outcomes));
      if (records) known[group] = came;
      for (const [what, outcome] of Object.entries(came)) {
        assert.deepEqual(outcome, known[group]?.[what], what);
      }
      assert.deepEqual(Object.keys(came), Object.keys(known[group] ?? {}));
    },
  };
}

/** Who is calling, as the credentials say: `nobody`, `denied`, `bug`, or this caller. */
export const identifying =
  (caller: Caller): Identify =>
  async ({ header, watchToken }) => {
    const shown = watchToken ?? header("authorization");
    if (shown === "nobody") {
      throw new GatewayError("UNAUTHENTICATED", "say who is calling", { reason: "NOBODY" });
    }
    if (shown === "denied") throw new GatewayError("PERMISSION_DENIED", "not that account");
    if (shown === "bug") throw new TypeError("a bug");
    return caller;
  };
