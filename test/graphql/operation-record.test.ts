import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { reportTo } from "../../src/report.ts";
import { emptyPage, type FakeMethods } from "../fake-core.ts";
import { until } from "../until.ts";
import { createFeed, refusing } from "./feed.ts";
import { serve } from "./serve.ts";
import { socketClient } from "./socket.ts";

/* `http-path.test.ts` has what is recorded of each request there, failed and invalid ones too. */
/** The GraphQL edge with an observer that records each operation that ended. */
async function observed(t: TestContext, methods: FakeMethods = {}) {
  const ended: object[] = [];
  const gateway = await serve(t, methods, {
    report: reportTo({
      graphqlEnded({ durationMs, traceparent, ...told }) {
        assert.ok(durationMs > 0);
        assert.equal(traceparent, undefined, "nothing is traced");
        ended.push(told);
      },
    }),
  });
  return {
    gateway,
    /** Resolves with the n-th operation that ended, counted from 0. */
    ended: (nth: number) => until(() => ended[nth]),
  };
}

const operationOf = (id: string) => `{ operation(externalId: "${id}", operationId: "o") { id } }`;
const confirm = 'mutation { confirmPayment(input: {externalId: "e"}) { __typename } }';

test("each operation is recorded with its root field and the code of its error or its result", async (t) => {
  const { gateway, ended } = await observed(t, {
    listPayments: emptyPage,
    async getOperation({ externalId }) {
      const upstream = externalId === "upstream" ? create(UpstreamErrorSchema) : undefined;
      throw new GatewayError("FAILED_PRECONDITION", "declined", upstream && { upstream });
    },
    async confirmPayment({ externalId }) {
      throw new GatewayError("UNKNOWN", "refused", { outcomeUnknown: { externalId } });
    },
  });
  const cases: [query: string, type: string, field: string, code: string][] = [
    ["{ rateLimit { limit } }", "query", "rateLimit", "OK"],
    ["query A { a: rateLimit { limit } b: rateLimit { limit } }", "query", "rateLimit", "OK"],
    ["{ rateLimit { limit } __typename }", "query", "rateLimit", "OK"],
    ["{ rateLimit { limit } payments { __typename } }", "query", "several", "OK"],
    ["{ ...f } fragment f on Query { rateLimit { limit } }", "query", "rateLimit", "OK"],
    [operationOf("upstream"), "query", "operation", "UPSTREAM_ERROR"],
    [operationOf("ours"), "query", "operation", "FAILED_PRECONDITION"],
    [confirm, "mutation", "confirmPayment", "OUTCOME_UNKNOWN"],
  ];
  for (const [nth, [query, type, field, code]] of cases.entries()) {
    await gateway.run(query);
    assert.deepEqual(await ended(nth), { type, field, transport: "http", code }, query);
  }
});

test("WebSocket operations are recorded, including invalid ones", async (t) => {
  const { gateway, ended } = await observed(t);
  const client = socketClient(t, gateway);
  const transport = "websocket";
  await client.iterate({ query: "{ rateLimit { limit } }" }).next();
  assert.deepEqual(await ended(0), { type: "query", field: "rateLimit", transport, code: "OK" });
  await assert.rejects(client.iterate({ query: "{ nonsense }" }).next());
  const invalid = { type: "invalid", field: "none", code: "GRAPHQL_VALIDATION_FAILED" };
  assert.deepEqual(await ended(1), { ...invalid, transport });
});

test("a subscription is recorded with the code of what ended it", async (t) => {
  const { gateway, ended } = await observed(t, {
    ...refusing("RESOURCE_EXHAUSTED", { reason: "SLOW_CONSUMER" }),
    watchPayout: createFeed().watch,
  });
  const subscribe = (field: string, signal?: AbortSignal) => {
    const query = `subscription { ${field}(externalId: "e") { final } }`;
    return gateway.post({ query }, { accept: "text/event-stream" }, signal);
  };
  await (await subscribe("paymentUpdated")).text();
  const told = { type: "subscription", transport: "sse" };
  assert.deepEqual(await ended(0), { ...told, field: "paymentUpdated", code: "RATE_LIMITED" });

  const gone = new AbortController();
  assert.equal((await subscribe("payoutUpdated", gone.signal)).status, 200);
  gone.abort();
  assert.deepEqual(await ended(1), { ...told, field: "payoutUpdated", code: "CANCELLED" });
});
