import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createWatchTokens } from "../../src/auth/watch-token.ts";
import type { Context } from "../../src/core/context.ts";
import { eventCases } from "../../src/core/list-events.ts";
import { listKnown } from "../../src/core/list-known.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import {
  CreateWatchTokenRequestSchema,
  ListEventsRequestSchema,
} from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { ListPaymentsRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { UnreadableRecord } from "../../src/ledger/record.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { payment } from "../ledger/entries.ts";
import { overridden } from "../overridden.ts";
import { account, callOf } from "./rig.ts";

/** A log with `count` events of the payment `order-1`, and a function that lists pages of it. */
async function start(count: number) {
  const log = createMemoryLedger({ retentionMs: 60_000 });
  const cursors: string[] = [];
  const add = async () => {
    const { event } = await log.append(account, payment({ paymentId: `p-${cursors.length}` }));
    cursors.push(event?.cursor ?? "");
  };
  for (let i = 0; i < count; i++) await add();
  const { listEvents } = eventCases({ ledger: log } as unknown as Context);
  const page = async (init: MessageInitShape<typeof ListEventsRequestSchema> = {}) => {
    const of = { kind: EventKind.PAYMENT, externalId: "order-1", ...init };
    const answer = await listEvents(create(ListEventsRequestSchema, of), callOf());
    assert.equal(answer.hasNextPage, answer.endCursor !== undefined);
    assert.equal(answer.hasPreviousPage, Boolean(init.pageToken));
    return {
      cursors: answer.edges.map(({ node }) => node.cursor),
      pageToken: answer.endCursor ?? "",
    };
  };
  return { log, cursors, add, page };
}

test("a page size over the most is the most", async () => {
  const { cursors, page } = await start(1_002);
  const first = await page({ pageSize: 2_000_000_000 });
  assert.deepEqual(first.cursors, cursors.slice(0, 1_000));
  const second = await page({ pageSize: 1_001, pageToken: first.pageToken });
  assert.deepEqual(second, { cursors: cursors.slice(1_000), pageToken: "" });
});

for (const newestFirst of [false, true]) {
  const order = newestFirst ? "newest first" : "oldest first";
  const inOrder = (cursors: string[]) => (newestFirst ? cursors.toReversed() : [...cursors]);

  test(`pages list each event once, ${order}`, async () => {
    const { cursors, page } = await start(7);
    const all = inOrder(cursors);
    let pageToken = "";
    for (const size of [3, 3, 1]) {
      const next = await page({ pageSize: 3, pageToken, newestFirst });
      assert.deepEqual(next.cursors, all.splice(0, size));
      pageToken = next.pageToken;
    }
    assert.equal(pageToken, "", "the last page has no token");
    const whole = await page({ pageSize: 7, newestFirst });
    assert.deepEqual(whole, { cursors: inOrder(cursors), pageToken: "" });
  });

  test(`events that are stored between two pages shift no page, ${order}`, async () => {
    const { cursors, add, page } = await start(4);
    const first = await page({ pageSize: 2, newestFirst });
    const rest = inOrder(cursors).slice(2);
    await add();
    const second = await page({ pageSize: 9, pageToken: first.pageToken, newestFirst });
    const expected = newestFirst ? rest : [...rest, ...cursors.slice(4)];
    assert.deepEqual(second, { cursors: expected, pageToken: "" });
  });

  test(`an empty list has no events and no page token, ${order}`, async () => {
    const { page } = await start(0);
    assert.deepEqual(await page({ newestFirst }), { cursors: [], pageToken: "" });
  });
}

test("a page has fifty events by default", async () => {
  const { page } = await start(51);
  const { cursors, pageToken } = await page();
  assert.equal(cursors.length, 50);
  assert.notEqual(pageToken, "");
});

test("a page token is valid only for its own list", async () => {
  const { page } = await start(3);
  const { pageToken } = await page({ pageSize: 1 });
  for (const other of [
    { pageToken, newestFirst: true },
    { pageToken, externalId: "order-2" },
    { pageToken, kind: EventKind.PAYOUT },
    { pageToken: `${pageToken}x` },
    { pageToken: "nonsense" },
  ]) {
    await assert.rejects(page({ pageSize: 1, ...other }), {
      code: "INVALID_ARGUMENT",
      message: "page_token: is not a token of this list",
    });
  }
});

test("a page token of a lost log is refused with OUT_OF_RANGE", async () => {
  const { pageToken } = await (await start(3)).page({ pageSize: 1 });
  const { page } = await start(3);
  await assert.rejects(page({ pageSize: 1, pageToken }), { code: "OUT_OF_RANGE" });
  const newest = await (await start(3)).page({ pageSize: 1, newestFirst: true });
  const again = page({ pageSize: 1, newestFirst: true, pageToken: newest.pageToken });
  await assert.rejects(again, { code: "OUT_OF_RANGE" });
});

test("a watch token lives for its ttl, else its ttl_seconds, else the default", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_700_000_000_000 });
  const watchTokens = createWatchTokens(new Secret("s".repeat(32)));
  const { createWatchToken } = eventCases({ watchTokens } as unknown as Context);
  for (const [init, seconds] of [
    [{ ttl: durationFromMs(3_600_999) }, 3_600],
    [{ ttl: durationFromMs(60_000), ttlSeconds: 5 }, 60],
    [{ ttlSeconds: 5 }, 5],
    [{}, 900],
  ] as const) {
    const about = { kind: EventKind.PAYMENT, externalId: "order-1", ...init };
    const request = create(CreateWatchTokenRequestSchema, about);
    const { token, expiresAt } = await createWatchToken(request, callOf());
    assert.equal(timestampMs(expiresAt ?? assert.fail()), Date.now() + seconds * 1_000);
    const read = await watchTokens.verify(token);
    assert.equal(read.watch?.externalId, "order-1");
    assert.equal(read.expiresAtMs, Date.now() + seconds * 1_000);
  }
});

test("a record that cannot be read is missing in a list, and keeps nothing else out of it", async () => {
  const log = createMemoryLedger({ retentionMs: 60_000, giveUpMs: 60_000 });
  for (const externalId of ["first", "damaged", "last"]) {
    await log.append(account, payment({ externalId, paymentId: externalId }));
  }
  const ledger = overridden(log, {
    async known(of, kind, externalId) {
      if (externalId === "damaged") throw new UnreadableRecord(`payment:${externalId}`);
      return log.known(of, kind, externalId);
    },
  });
  const page = (pageToken = "") =>
    listKnown({ ledger }, create(ListPaymentsRequestSchema, { pageSize: 2, pageToken }), callOf(), {
      kind: EventKind.PAYMENT,
      stateOf: () => PaymentState.PENDING,
      answerOf: () => ({ state: 0, needsOperator: false }),
    });
  const names = ({ edges }: Awaited<ReturnType<typeof page>>) =>
    edges.map(({ externalId }) => externalId);
  const first = await page();
  assert.deepEqual(names(first), ["first"]);
  assert.deepEqual(names(await page(first.endCursor)), ["last"]);
});
