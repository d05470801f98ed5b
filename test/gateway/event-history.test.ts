import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { sign } from "../../src/wire/signature.ts";
import { startTestGateway } from "../start.ts";

let gateway: Gateway;

before(async () => {
  gateway = await startTestGateway();
});
after(() => gateway.stop());

const page = `edges { cursor node { cursor externalId } }
  pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;

interface Page {
  readonly edges: readonly { cursor: string; node: { cursor: string; externalId: string } }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

async function graphql(query: string, of = gateway, authorization?: string) {
  const answer = await fetch(`${of.publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(authorization && { authorization }) },
    body: JSON.stringify({ query }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: as the query asks for it
  return (await answer.json()) as { data: any; errors?: { extensions: any; path: unknown }[] };
}

async function pageOf(kind: "payment" | "payout", externalId: string, args: string) {
  const query = `{ ${kind}(externalId: "${externalId}") { eventsConnection(${args}) { ${page} } } }`;
  const { data, errors } = await graphql(query);
  assert.equal(errors, undefined, JSON.stringify(errors));
  return data[kind].eventsConnection as Page;
}

/** Adds events `from` to `to`, exclusive, by callbacks: number 0 pays, the others are refunds. */
async function addEvents(externalId: string, from: number, to: number, of = gateway) {
  for (let nth = from; nth < to; nth++) {
    const body = JSON.stringify({
      external_id: externalId,
      operation: nth === 0 ? "payment" : "refund",
      details: {
        payment_id: `p-${externalId}`,
        operation_id: `${nth}`,
        status: "success",
        amount: "1.00",
      },
    });
    const answer = await fetch(`${of.publicUrl}/callbacks/default/payments`, {
      method: "POST",
      headers: { "x-service-signature": sign(Buffer.from(body), "sandbox-password") },
      body,
    });
    assert.equal(answer.status, 200);
  }
}

function listEvents(externalId: string, init: { pageSize: number; newestFirst: boolean }) {
  const transport = createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "1.1" });
  const request = { kind: EventKind.PAYMENT, externalId, ...init };
  return createClient(EventService, transport).listEvents(request);
}

for (const newestFirst of [false, true]) {
  const order = newestFirst ? "newest first" : "oldest first";

  test(`a payment's eventsConnection pages like ListEvents, with the same tokens, ${order}`, async () => {
    const externalId = `order-${order.replace(" ", "-")}`;
    await addEvents(externalId, 0, 5);
    const list = await listEvents(externalId, { pageSize: 100, newestFirst });
    const expected = list.events.map(({ cursor }) => cursor);
    assert.equal(expected.length, 5);

    const first = await pageOf("payment", externalId, `first: 2, newestFirst: ${newestFirst}`);
    assert.deepEqual(
      first.edges.map(({ node }) => node.cursor),
      expected.slice(0, 2),
    );
    const { nextPageToken } = await listEvents(externalId, { pageSize: 2, newestFirst });
    assert.deepEqual(first.pageInfo, {
      hasNextPage: true,
      hasPreviousPage: false,
      startCursor: first.edges[0]?.cursor,
      endCursor: nextPageToken,
    });

    // An event that arrives between two pages does not shift them.
    await addEvents(externalId, 5, 6);
    const after = `after: "${first.pageInfo.endCursor}", newestFirst: ${newestFirst}`;
    const rest = await pageOf("payment", externalId, after);
    const cursors = rest.edges.map(({ node }) => node.cursor);
    assert.deepEqual(cursors.slice(0, 3), expected.slice(2));
    assert.equal(cursors.length, newestFirst ? 3 : 4);
    assert.deepEqual([rest.pageInfo.hasNextPage, rest.pageInfo.hasPreviousPage], [false, true]);
    assert.equal(rest.edges.at(-1)?.cursor, rest.pageInfo.endCursor);
    const behind = await pageOf(
      "payment",
      externalId,
      `after: "${rest.pageInfo.endCursor}", newestFirst: ${newestFirst}`,
    );
    assert.deepEqual(behind, {
      edges: [],
      pageInfo: {
        hasNextPage: false,
        hasPreviousPage: true,
        startCursor: null,
        endCursor: null,
      },
    });
  });
}

test("a payout has an eventsConnection, also in the answer of requestPayout", async () => {
  const { data, errors } = await graphql(`mutation { requestPayout(input: {
    order: {currency: "UAH", description: "d", externalId: "payout-1", originalAmount: "100.00"}
    payer: {entityId: "1"}
    payoutType: "cash"
    recipient: {cash: {firstName: "A", lastName: "B"}}
  }) { __typename ... on Payout { eventsConnection { ${page} } } } }`);
  assert.equal(errors, undefined, JSON.stringify(errors));
  const [made] = (data.requestPayout.eventsConnection as Page).edges;
  assert.equal(made?.node.externalId, "payout-1");
  const { edges } = await pageOf("payout", "payout-1", "first: 100");
  assert.deepEqual(edges[0], made);
});

test("an invalid page argument is refused by name, and the payment is answered", async () => {
  await addEvents("order-refused", 0, 3);
  const { pageInfo } = await pageOf("payment", "order-refused", "first: 1");
  for (const [args, path] of [
    ["first: 0", "first"],
    ["first: 101", "first"],
    ['after: "nonsense"', "after"],
    [`after: "${pageInfo.endCursor}", newestFirst: true`, "after"],
  ]) {
    const { data, errors } = await graphql(
      `{ payment(externalId: "order-refused") { externalId eventsConnection(${args}) { ${page} } } }`,
    );
    assert.deepEqual(data.payment, { externalId: "order-refused", eventsConnection: null });
    assert.equal(errors?.[0]?.extensions.code, "BAD_USER_INPUT", args);
    assert.equal(errors?.[0]?.extensions.fields[0].path, path);
  }
});

test("an eventsConnection costs as much as its largest page may hold", async () => {
  const ofPage = (first: number) => `{ payment(externalId: "x") {
    eventsConnection(first: ${first}) { edges { node { payment {
      action { value } customer { email } details { fee { amount } fiscalization { fiscalId } }
      paymentMethod { ccToken { mask } applePay { mask } googlePay { mask } }
    } } } } } }`;
  assert.equal((await graphql(ofPage(50))).errors, undefined);
  const { errors } = await graphql(ofPage(100));
  assert.equal(errors?.[0]?.extensions.code, "OPERATION_TOO_COMPLEX");
});
