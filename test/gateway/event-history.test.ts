import assert from "node:assert/strict";
import { test } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { clientOf, dataOf, graphql, sendCallback } from "./callers.ts";

const gateway = ofSuite(startTestGateway);

const page = `edges { cursor node { cursor externalId } }
  pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;

interface Page {
  readonly edges: readonly { cursor: string; node: { cursor: string; externalId: string } }[];
  readonly pageInfo: Readonly<Record<string, unknown>>;
}

async function pageOf(kind: "payment" | "payout", externalId: string, args: string): Promise<Page> {
  const query = `{ ${kind}(externalId: "${externalId}") { eventsConnection(${args}) { ${page} } } }`;
  return (await dataOf(gateway, query))[kind].eventsConnection;
}

/** Adds events by callbacks: number 0 pays, the others are refunds. */
async function addEvents(externalId: string, ...numbers: number[]) {
  for (const nth of numbers) {
    await sendCallback(gateway, {
      external_id: externalId,
      operation: nth === 0 ? "payment" : "refund",
      details: { payment_id: `p-${externalId}`, operation_id: `${nth}`, status: "success" },
    });
  }
}

test("a payment's eventsConnection pages like ListEvents, with the same tokens", async () => {
  const externalId = "order";
  await addEvents(externalId, 0, 1, 2);
  const list = (pageSize: number) =>
    clientOf(EventService, gateway).listEvents({
      ...{ kind: EventKind.PAYMENT, externalId, pageSize, newestFirst: true },
    });
  const expected = (await list(100)).events.map(({ cursor }) => cursor);
  const first = await pageOf("payment", externalId, "first: 2, newestFirst: true");
  const cursorsOf = ({ edges }: Page) => edges.map(({ node }) => node.cursor);
  assert.deepEqual(cursorsOf(first), expected.slice(0, 2));
  const { nextPageToken } = await list(2);
  assert.deepEqual(first.pageInfo, {
    ...{ hasNextPage: true, hasPreviousPage: false },
    ...{ startCursor: first.edges[0]?.cursor, endCursor: nextPageToken },
  });

  const after = (cursor: unknown) =>
    pageOf("payment", externalId, `after: "${cursor}", newestFirst: true`);
  const rest = await after(nextPageToken);
  assert.deepEqual(cursorsOf(rest), expected.slice(2));
  assert.deepEqual([rest.pageInfo.hasNextPage, rest.pageInfo.hasPreviousPage], [false, true]);
  assert.equal(rest.edges.at(-1)?.cursor, rest.pageInfo.endCursor);
  const none = { hasNextPage: false, hasPreviousPage: true, startCursor: null, endCursor: null };
  assert.deepEqual(await after(rest.pageInfo.endCursor), { edges: [], pageInfo: none });
});

test("a payout has an eventsConnection, also in the answer of requestPayout", async () => {
  const { requestPayout } = await dataOf(
    gateway,
    `mutation { requestPayout(input: {
      order: {currency: "UAH", description: "d", externalId: "payout-1", originalAmount: "100.00"}
      payer: {entityId: "1"}
      payoutType: "cash"
      recipient: {cash: {firstName: "A", lastName: "B"}}
    }) { __typename ... on Payout { eventsConnection { ${page} } } } }`,
  );
  const [made] = (requestPayout.eventsConnection as Page).edges;
  assert.equal(made?.node.externalId, "payout-1");
  const { edges } = await pageOf("payout", "payout-1", "first: 100");
  assert.deepEqual(edges[0], made);
});

test("an eventsConnection costs as much as its largest page may hold", async () => {
  const ofPage = (first: number) => `{ payment(externalId: "x") {
    eventsConnection(first: ${first}) { edges { node { payment {
      action { value } customer { email } details { fee { amount } fiscalization { fiscalId } }
      paymentMethod { ccToken { mask } applePay { mask } googlePay { mask } }
    } } } } } }`;
  await dataOf(gateway, ofPage(50));
  const { errors } = await graphql(gateway, ofPage(100));
  assert.equal(errors?.[0]?.extensions.code, "OPERATION_TOO_COMPLEX");
});
