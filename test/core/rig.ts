import assert from "node:assert/strict";
import type { Scope } from "../../src/auth/caller.ts";
import type { Call } from "../../src/core/core.ts";
import { createCore } from "../../src/core/create-core.ts";
import { reportTo } from "../../src/report.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { createMemoryLedger } from "../ledger/create.ts";

export const account = "default";
export const keyring = await deriveKeyring(account, [new Secret("password")]);

/** A call of a caller with these scopes. */
export const callOf = (scopes: readonly Scope[] = [], given: Partial<Call> = {}): Call => ({
  caller: { name: "test", account, scopes: new Set(scopes) },
  ...{ signal: new AbortController().signal, requestId: "r", ...given },
});

/** A core in front of this payments service, with a ledger in memory. */
export function coreBefore(upstream: Partial<Upstream>) {
  const log = createMemoryLedger({ retentionMs: 60_000, giveUpMs: 60_000 });
  const core = createCore({
    accounts: new Map([[account, { upstream } as never]]),
    ...{ ledger: log, keyrings: new Map([[account, keyring]]), watchTokens: undefined },
    timeouts: { maxWaitMs: 1_000, timeoutMs: 5_000 },
    callbackUrl: () => "http://127.0.0.1/",
    ...{ maxStreamsPerCaller: undefined, namesExternalIds: true, tracing: noTracing },
    report: reportTo({ unrecorded: ({ error }) => assert.fail(error as Error) }),
  });
  return { core, log };
}
