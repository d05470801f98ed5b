import assert from "node:assert/strict";
import { test } from "node:test";
import { type MessageInitShape, type MessageShape, toJson } from "@bufbuild/protobuf";
import { TimestampSchema, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { BadRequestSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  type ListedPayment,
  type ListPaymentsRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { ofSuite } from "../of-suite.ts";
import { failure } from "../rpc/start.ts";
import { startTestGateway } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { clientOf, dataOf, graphql, paymentTold, sendCallback } from "./callers.ts";

const gateway = ofSuite(startTestGateway);

type Init = MessageInitShape<typeof ListPaymentsRequestSchema>;

const clients = () => ({
  payments: clientOf(PaymentService, gateway),
  payouts: clientOf(PayoutService, gateway),
});

/** A callback about a payment, which the service made for somebody else. */
const tell = (externalId: string, status: string, operation = "payment") =>
  sendCallback(gateway, paymentTold(externalId, status, operation));

/** All payments of a list, read page by page. */
async function walk(init: Init): Promise<ListedPayment[]> {
  const { payments: client } = clients();
  const all: ListedPayment[] = [];
  for (let pageToken = ""; ; ) {
    const page = await client.listPayments({ ...init, pageToken });
    all.push(...page.payments);
    pageToken = page.nextPageToken;
    if (pageToken === "") return all;
  }
}

const names = (all: readonly { readonly externalId: string }[]) =>
  all.map(({ externalId }) => externalId);

/** What the metrics say of requests to the service. */
async function upstreamRequests(): Promise<object[]> {
  const { samples } = await scrapeOf(gateway);
  return samples.filter(({ name }) => name.startsWith("payments_gateway_upstream_"));
}

test("a list shows of each payment what GetPayment shows, without a call to the service", async () => {
  const { payments: client } = clients();
  const beganMs = Date.now();
  await tell("shown-1", "pending");
  await tell("shown-2", "success");
  await tell("shown-1", "failure");
  const requests = await upstreamRequests();
  const all = await walk({ pageSize: 1 });
  assert.deepEqual(await upstreamRequests(), requests);
  assert.deepEqual(
    names(all).filter((name) => name.startsWith("shown")),
    ["shown-1", "shown-2"],
  );
  for (const { $typeName: _, firstSeenAt, updatedAt, ...listed } of all) {
    const known = await client.getPayment({ externalId: listed.externalId });
    const { $typeName: __, operations: ___, olderFailures: ____, ...shown } = known;
    assert.deepEqual({ externalId: listed.externalId, ...shown }, listed);
    assert.ok(firstSeenAt && updatedAt);
    assert.ok(timestampMs(firstSeenAt) >= beganMs && timestampMs(updatedAt) <= Date.now());
  }
  const [first, second] = all.slice(-2);
  assert.ok(first?.updatedAt && first.firstSeenAt && second?.updatedAt && second.firstSeenAt);
  assert.ok(timestampMs(first.updatedAt) >= timestampMs(second.updatedAt));
  const between: Init = { firstSeenAfter: first.firstSeenAt, states: [PaymentState.PAID] };
  assert.deepEqual(names(await walk(between)), ["shown-2"]);
  const before: Init = { firstSeenBefore: second.firstSeenAt, newestFirst: true, pageSize: 1 };
  assert.equal(names(await walk(before))[0], "shown-1");
});

test("page_size over 100 counts as 100, and a page without more has no token", async () => {
  // The payments of no other test are cancelled.
  for (let n = 0; n < 103; n++) await tell(`many-${n}`, "success", "cancel");
  const { payments: client } = clients();
  const list = (init: Init) => client.listPayments({ states: [PaymentState.CANCELLED], ...init });
  const page = await list({ pageSize: 5_000 });
  assert.equal(page.payments.length, 100);
  const rest = await list({ pageSize: 5_000, pageToken: page.nextPageToken });
  assert.deepEqual([rest.payments.length, rest.nextPageToken], [3, ""]);
  assert.equal((await list({})).payments.length, 50);
  const data = await dataOf(gateway, "{ payments(first: 100) { edges { node { state } } } }");
  assert.equal(data.payments.edges.length, 100);
});

test("refuses a token that is none, or of another list, and names the field", async () => {
  for (const name of ["token-1", "token-2"]) await tell(name, "success");
  const { payments, payouts } = clients();
  const { nextPageToken } = await payments.listPayments({ pageSize: 1 });
  assert.notEqual(nextPageToken, "");
  const altered = Buffer.from(nextPageToken, "base64url");
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 64;
  const ofOldest = { pageToken: nextPageToken };
  for (const [listing, field] of [
    [() => payments.listPayments({ pageToken: "garbage" }), "page_token"],
    [() => payments.listPayments({ pageToken: `${nextPageToken}A` }), "page_token"],
    [() => payments.listPayments({ pageToken: altered.toString("base64url") }), "page_token"],
    [() => payments.listPayments({ ...ofOldest, newestFirst: true }), "page_token"],
    [() => payouts.listPayouts(ofOldest), "page_token"],
    [() => payments.listPayments({ states: [PaymentState.UNSPECIFIED] }), "states[0]"],
  ] as const) {
    const error = await failure(listing());
    const [details] = error.findDetails(BadRequestSchema);
    const fields = details?.fieldViolations.map((violation) => violation.field);
    assert.deepEqual([error.code, fields], [Code.InvalidArgument, [field]]);
  }
  for (const [args, field] of [
    ['after: "garbage"', "after"],
    [`after: "${nextPageToken}", newestFirst: true`, "after"],
    ["first: 0", "first"],
    ["first: 101", "first"],
  ]) {
    const { errors } = await graphql(gateway, `{ payments(${args}) { edges { cursor } } }`);
    const { code, fields } = errors?.[0].extensions ?? {};
    assert.deepEqual([code, fields?.length, fields?.[0].path], ["BAD_USER_INPUT", 1, field]);
  }
});

test("GraphQL pages with the same tokens, and its payments have what was read of them", async () => {
  for (const name of ["gql-1", "gql-2", "gql-3"]) await tell(name, "pending");
  await tell("gql-2", "success");
  const { firstSeenAt } = (await walk({ newestFirst: true, pageSize: 3 }))[3] ?? {};
  assert.ok(firstSeenAt);
  const since = toJson(TimestampSchema, firstSeenAt as MessageShape<typeof TimestampSchema>);
  const page = async (args: string) => {
    const query = `{ payments(filter: { firstSeenAfter: "${since}", states: [PENDING, PAID] }, ${args}) {
      edges { cursor firstSeenAt node { externalId state cursor outcomeUnknown operations { status } } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;
    return (await dataOf(gateway, query)).payments;
  };
  const one = await page("first: 2");
  const [pending, paid] = one.edges;
  assert.deepEqual([pending.node.externalId, pending.node.state], ["gql-1", "PENDING"]);
  const [, , listed] = (await walk({ newestFirst: true, pageSize: 3 })).slice(0, 3);
  const told = toJson(TimestampSchema, listed?.firstSeenAt as MessageShape<typeof TimestampSchema>);
  assert.equal(pending.firstSeenAt, told);
  const { cursor: _, ...known } = paid.node;
  const operations = [{ status: "SUCCESS" }];
  assert.deepEqual(known, {
    externalId: "gql-2",
    state: "PAID",
    outcomeUnknown: false,
    operations,
  });
  assert.deepEqual(one.pageInfo, {
    ...{ hasNextPage: true, hasPreviousPage: false },
    ...{ startCursor: pending.cursor, endCursor: paid.cursor },
  });
  const { edges, pageInfo } = await page(`first: 2, after: "${one.pageInfo.endCursor}"`);
  assert.deepEqual([edges.length, edges[0].node.externalId], [1, "gql-3"]);
  assert.deepEqual([pageInfo.hasNextPage, pageInfo.hasPreviousPage], [false, true]);
  const { nextPageToken } = await clients().payments.listPayments({
    firstSeenAfter: firstSeenAt,
    pageSize: 2,
  });
  assert.equal(nextPageToken, one.pageInfo.endCursor);
});

test("payouts have a list of their own, by their own states", async () => {
  for (const [external_id, status] of [
    ["out-1", "success"],
    ["out-2", "processing"],
  ]) {
    const told = { external_id, transaction_id: `t-${external_id}`, status };
    await sendCallback(gateway, told, { path: "default/payouts" });
  }
  const { payouts: client } = clients();
  const requests = await upstreamRequests();
  const { payouts } = await client.listPayouts({});
  assert.deepEqual(
    payouts.map(({ externalId, state, payout }) => [externalId, state, payout?.transactionId]),
    [
      ["out-1", PayoutState.PAID, "t-out-1"],
      ["out-2", PayoutState.PENDING, "t-out-2"],
    ],
  );
  const pending = await client.listPayouts({ states: [PayoutState.PENDING], needsOperator: false });
  assert.deepEqual(names(pending.payouts), ["out-2"]);
  const query = `{ payouts(filter: { states: [PAID] }, newestFirst: true) {
    edges { node { externalId state status } } } }`;
  assert.deepEqual((await dataOf(gateway, query)).payouts.edges, [
    { node: { externalId: "out-1", state: "PAID", status: "success" } },
  ]);
  assert.deepEqual(await upstreamRequests(), requests);
});
