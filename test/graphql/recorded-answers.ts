import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import type { Identify } from "../../src/auth/identify.ts";
import type { Call, Core } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import type { EdgeOptions } from "../../src/graphql/edge.ts";
import { type Admission, freeSlot } from "../../src/net/admission.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { until } from "../until.ts";
import { type Served, serve, somebody } from "./serve.ts";

/*
 * Compares answers with those that Yoga gave to the same requests, before the gateway read and
 * wrote GraphQL over HTTP itself, but for those of decision 17: a response, log records, reported operations and calls to the
 * core. Left out: times, ids that are new in each response, and how HTTP frames a body.
 *
 * `RECORD_ANSWERS=true npm run test:only test/graphql/http-path.test.ts` records today's answers
 * instead, for requests that are added or answered otherwise on purpose.
 */

/** The answers differ little. */
const wideWindow = { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } };

type Outcomes = Readonly<Record<string, unknown>>;

/** What was recorded in `test/fixtures/graphql`. */
export function recordedAnswers(name: string) {
  const file = new URL(`../fixtures/graphql/${name}.json.br`, import.meta.url);
  const records = process.env.RECORD_ANSWERS === "true";
  const known: Record<string, Outcomes> = records
    ? {}
    : JSON.parse(String(brotliDecompressSync(readFileSync(file))));
  return {
    save() {
      if (records) writeFileSync(file, brotliCompressSync(JSON.stringify(known), wideWindow));
    },
    /** Compares what came of a group of requests with what is recorded. */
    check(group: string, { answers, ...trace }: { readonly answers: Outcomes }): void {
      const came = JSON.parse(JSON.stringify({ answers, ...trace }));
      if (records) known[group] = came;
      const { answers: before, ...traceBefore } = known[group] as typeof came;
      for (const [request, answer] of Object.entries(came.answers)) {
        assert.deepEqual(answer, before[request], request);
      }
      assert.deepEqual(Object.keys(came.answers), Object.keys(before));
      assert.deepEqual({ ...came, answers: undefined }, { ...traceBefore, answers: undefined });
    },
  };
}

/** Admission of a process that has slots left only for calls that move money. */
export const moneyOnly: Admission = {
  inFlight: 0,
  enter: ({ start }) => start({ ...freeSlot, moneyOnly: true }),
};

/** Who is calling, as the credentials say: `nobody`, `denied`, `bug`, or somebody. */
const identify: Identify = async ({ header, watchToken }) => {
  const shown = watchToken ?? header("authorization");
  if (shown === "nobody") {
    throw new GatewayError("UNAUTHENTICATED", "say who is calling", { reason: "NOBODY" });
  }
  if (shown === "denied") throw new GatewayError("PERMISSION_DENIED", "not that account");
  if (shown === "bug") throw new TypeError("a bug");
  return somebody;
};

/** A server, and what has come of the requests to it besides their answers. */
export async function startTraced(
  t: TestContext,
  methods: Partial<Core>,
  options: Partial<EdgeOptions>,
): Promise<Served & { trace(): Promise<object> }> {
  const ended: Observations["graphqlEnded"][] = [];
  const refused: Observations["refused"][] = [];
  const report = reportTo({
    graphqlEnded: (operation) => void ended.push(operation),
    refused: (refusal) => void refused.push(refusal),
  });
  const served = await serve(t, methods, {
    identify,
    report,
    ...options,
  });
  return {
    ...served,
    /** The order of records is not told: one is written only after its response was sent. */
    async trace() {
      await served.post({ query: "{ rateLimit { limit } }" }, { "x-request-id": "last" });
      await until(() => served.logged().includes('"last"'));
      return {
        refused: refused.map((refusal) => JSON.stringify(refusal)).sort(),
        calls: served.seen().map(({ method, args }) => {
          const { caller, idempotencyKey, transport, deadlineMs } = args.at(-1) as Call;
          const told = { caller, idempotencyKey, transport };
          const hasDeadline = deadlineMs !== undefined;
          return { method, given: args.slice(0, -1), ...told, hasDeadline };
        }),
        ended: ended
          .map(({ durationMs, ...others }) => JSON.stringify([durationMs >= 0, others]))
          .sort(),
        logged: served.logged().split("\n").slice(0, -1).map(withoutTimes).sort(),
      };
    },
  };
}

function withoutTimes(line: string): string {
  const { time, durationMs, requestId, err, ...rest } = JSON.parse(line);
  assert.ok(time !== undefined);
  const isNew = /^[0-9a-f]{8}-/.test(String(requestId));
  return JSON.stringify({
    ...{ ...rest, failure: err?.name ?? err?.type, message: err?.message },
    ...{ requestId: isNew ? "new" : requestId, timed: durationMs !== undefined },
  });
}
