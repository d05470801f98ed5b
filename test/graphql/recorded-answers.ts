import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { EdgeOptions } from "../../src/graphql/edge.ts";
import { type Admission, freeSlot } from "../../src/net/admission.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import type { FakeMethods } from "../fake-core.ts";
import { identifying, type Outcomes } from "../recorded.ts";
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

/** Admission of a process that has slots left only for calls that move money. */
export const moneyOnly: Admission = {
  inFlight: 0,
  enter: ({ start }) => start({ ...freeSlot, moneyOnly: true }),
};

/** A server, and what has come of the requests to it besides their answers. */
export async function startTraced(
  t: TestContext,
  methods: FakeMethods,
  options: Partial<EdgeOptions>,
): Promise<Served & { trace(): Promise<Outcomes> }> {
  const ended: Observations["graphqlEnded"][] = [];
  const refused: Observations["refused"][] = [];
  const report = reportTo({
    graphqlEnded: (operation) => void ended.push(operation),
    refused: (refusal) => void refused.push(refusal),
  });
  const served = await serve(t, methods, { identify: identifying(somebody), report, ...options });
  return {
    ...served,
    /** The order of records is not told: one is written only after its response was sent. */
    async trace() {
      await served.post({ query: "{ rateLimit { limit } }" }, { "x-request-id": "last" });
      await until(() => served.logged().includes('"last"'));
      return {
        refused: refused.map((refusal) => JSON.stringify(refusal)).sort(),
        calls: served.seen().map(({ method, request, call }) => {
          const { caller, idempotencyKey, transport, deadlineMs } = call;
          const told = { caller, idempotencyKey, transport };
          const hasDeadline = deadlineMs !== undefined;
          return { method, given: [request], ...told, hasDeadline };
        }),
        ended: ended
          // As it was recorded: all come by HTTP.
          .map(({ durationMs, ...others }) => [durationMs >= 0, { connection: "http", ...others }])
          .map((told) => JSON.stringify(told))
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
