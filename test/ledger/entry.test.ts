import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentOperation, PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { paymentEntry, payoutEntry } from "../../src/ledger/entry.ts";
import { decode } from "../../src/wire/wire.ts";

const source = EventSource.CALLBACK;

function payment(json: object, options: Partial<Parameters<typeof paymentEntry>[1]> = {}) {
  const message = decode(PaymentSchema, JSON.stringify(json));
  const raw = Buffer.from(JSON.stringify(json));
  return paymentEntry(message, { source, raw, ...options });
}

function payout(json: object) {
  const raw = Buffer.from(JSON.stringify(json));
  return payoutEntry(decode(PayoutSchema, JSON.stringify(json)), { source, raw });
}

describe("entry of a payment", () => {
  const full = {
    id: "id-1",
    external_id: "order-1",
    operation: "refund",
    details: {
      payment_id: "pay-1",
      transaction_id: "tx-1",
      operation_id: "op-1",
      status: "success",
      status_code: "refund_successful",
    },
  };

  it("names the payment, its operation and its state", () => {
    assert.partialDeepStrictEqual(payment(full), {
      ...{ kind: EventKind.PAYMENT, externalId: "order-1", subjectId: "pay-1" },
      ...{ operation: "refund", operationId: "op-1", status: "success", rank: 2 },
      event: { paymentId: "pay-1", final: true, source, resource: { case: "payment" } },
    });
  });

  for (const [status, rank, final] of [
    ["init", 0, false],
    ["pending", 1, false],
    ["success", 2, true],
    ["failure", 2, true],
  ] as const) {
    it(`ranks ${status} as ${rank}`, () => {
      const entry = payment({ ...full, details: { ...full.details, status } });
      assert.deepEqual([entry?.rank, entry?.event.final, entry?.status], [rank, final, status]);
    });
  }

  it("is identified by payment_id, else id, else transaction_id", () => {
    const { payment_id: _, ...details } = full.details;
    assert.equal(payment({ ...full, details })?.subjectId, "id-1");
    assert.equal(payment({ ...full, details, id: null })?.subjectId, "tx-1");
    assert.equal(payment({ ...full, details: {}, id: "" }), undefined);
  });

  it("takes its external_id from the message, else from the request, and needs one", () => {
    const { external_id: _, ...anonymous } = full;
    assert.equal(payment(anonymous), undefined);
    assert.equal(payment(anonymous, { externalId: "order-9" })?.externalId, "order-9");
    assert.equal(payment(full, { externalId: "order-9" })?.externalId, "order-1");
  });

  it("takes its operation from the message, else from the request, else it is `payment`", () => {
    const { operation: _, ...unnamed } = full;
    assert.equal(payment(unnamed)?.operation, "payment");
    const confirm = { operation: PaymentOperation.CONFIRM };
    assert.equal(payment(unnamed, confirm)?.operation, "confirm");
    assert.equal(payment(full, confirm)?.operation, "refund");
  });

  it("takes an empty operation or status for one that was not sent", () => {
    const blank = {
      ...full,
      operation: "",
      is_success: true,
      details: { payment_id: "p", status: "" },
    };
    const { operation, status, event } = payment(blank) ?? assert.fail();
    assert.deepEqual([operation, status, event.final], ["payment", "success", true]);
  });

  it("has an identity made of payment_id, operation, operation_id, status and status_code", () => {
    const same = payment({ ...full, receipt_url: "https://example.com/receipt" });
    assert.equal(same?.identity, payment(full)?.identity);
    assert.notEqual(same?.digest, payment(full)?.digest);
    const identities = [
      full,
      { ...full, operation: "cancel" },
      ...(["payment_id", "operation_id", "status_code"] as const).map((field) => ({
        ...full,
        details: { ...full.details, [field]: "other" },
      })),
      { ...full, details: { ...full.details, status: "failure" } },
      // A separator within a field must not be read as the start of the next field.
      { ...full, details: { ...full.details, operation_id: "op-1,success" } },
    ].map((json) => payment(json)?.identity);
    assert.equal(new Set(identities).size, identities.length);
  });

  it("has the word of an operation that the contract lacks, and is not final", () => {
    const told = { ...full, details: { ...full.details, status: "success" } };
    const chargeback = payment({ ...told, operation: "Chargeback" });
    assert.equal(chargeback?.operation, "other:chargeback");
    assert.deepEqual(chargeback.words, [["operation", "Chargeback"]]);
    assert.deepEqual([chargeback.status, chargeback.event.final], ["success", false]);
    assert.equal(payment(told)?.event.final, true, "the control");
    const unread = payment({ ...told, operation: { name: "payment" } });
    assert.deepEqual([unread?.operation, unread?.event.final], ["unknown", false]);
  });

  it("is of the operation that was asked for, and keeps the word that the answer has", () => {
    const answer = payment({ ...full, operation: "sale" }, { operation: PaymentOperation.CONFIRM });
    assert.equal(answer?.operation, "confirm");
    assert.deepEqual(answer.words, [["operation", "sale"]]);
  });

  it("has the same identity for the same word, in any case, whatever else the body says", () => {
    const told = (operation: string, payload: string) =>
      payment({ ...full, operation, details: { ...full.details, payload } })?.identity;
    assert.equal(told("chargeback", "a"), told("CHARGEBACK", "b"));
    assert.notEqual(told("chargeback", "a"), told("reversal", "a"));
    const long = "x".repeat(100);
    assert.notEqual(told(`${long}a`, "a"), told(`${long}b`, "a"), "what was cut may differ");
  });

  it("has different identities for two statuses that the contract lacks", () => {
    const held = payment({ ...full, details: { ...full.details, status: "held" } });
    const frozen = payment({ ...full, details: { ...full.details, status: "frozen" } });
    assert.notEqual(held?.identity, frozen?.identity);
    assert.deepEqual([held?.rank, held?.status, held?.event.final], [-1, "", false]);
  });

  it("has a digest of a callback's bytes, but none for an answer", () => {
    assert.match(payment(full)?.digest ?? "", /^[\w-]{43}$/);
    const answer = paymentEntry(create(PaymentSchema, { externalId: "o", id: "i" }), {
      source: EventSource.RESPONSE,
    });
    assert(answer);
    assert.equal(answer.digest, undefined);
  });
});

describe("entry of a payout", () => {
  const full = { external_id: "payout-1", transaction_id: "tx-1", status_code: "ok" };

  for (const [status, rank] of [
    ["init", 0],
    ["INIT", 0],
    ["", 0],
    ["processing", 1],
    ["Pending", 1],
    ["success", 2],
    ["SUCCESS", 2],
    ["Failure", 2],
  ] as const) {
    it(`ranks the status ${JSON.stringify(status)} as ${rank}`, () => {
      const { event, ...entry } = payout({ ...full, status }) ?? assert.fail();
      const told = [entry.rank, entry.status, event.final];
      assert.deepEqual(told, [rank, status.toLowerCase(), rank === 2]);
    });
  }

  it("needs a transaction_id, which identifies it, and an external_id", () => {
    const { event, ...entry } = payout({ ...full, status: "success" }) ?? assert.fail();
    assert.deepEqual([entry.subjectId, entry.operation], ["tx-1", "payout"]);
    assert.deepEqual([event.transactionId, event.paymentId], ["tx-1", undefined]);
    assert.equal(payout({ ...full, transaction_id: null }), undefined);
    assert.equal(payout({ ...full, external_id: "" }), undefined);
  });
});

describe("a value that is not understood", () => {
  const base = {
    external_id: "order-1",
    id: "p",
    operation: "payment",
    details: { payment_id: "p", status: "pending", status_code: "a" },
  };
  const withReceipt = (fiscalization: unknown) => withDetails({ fiscalization });
  const paidOut = { external_id: "payout-1", transaction_id: "tx-1" };
  const withDetails = (more: object) => ({ ...base, details: { ...base.details, ...more } });
  const odd = { odd: true };

  for (const [path, one, other] of [
    ["details.status_code", withDetails({ status_code: odd }), withDetails({ status_code: [1] })],
    [
      "details.operation_id",
      withDetails({ operation_id: odd }),
      withDetails({ operation_id: [1] }),
    ],
    ["details.status", withDetails({ status: "new" }), withDetails({ status: "newer" })],
    ["operation", { ...base, operation: "new" }, { ...base, operation: "newer" }],
    ["details", { ...base, details: "x" }, { ...base, details: [1] }],
    ["details.fiscalization", withReceipt("x"), withReceipt([1])],
    [
      "details.fiscalization.status",
      withReceipt({ status: "new" }),
      withReceipt({ status: "newer" }),
    ],
    [
      "details.fiscalization.status_code",
      withReceipt({ status_code: odd }),
      withReceipt({ status_code: [1] }),
    ],
    ["status", { ...paidOut, status: odd }, { ...paidOut, status: [1] }],
    ["status_code", { ...paidOut, status_code: odd }, { ...paidOut, status_code: [1] }],
  ] as const) {
    it(`at ${path} distinguishes two bodies`, () => {
      const entryOf = one.external_id === paidOut.external_id ? payout : payment;
      assert(entryOf(one)?.identity);
      assert.notEqual(entryOf(one)?.identity, entryOf(other)?.identity);
      assert.equal(entryOf(one)?.identity, entryOf(one)?.identity, "the control");
    });
  }
});

it("long texts are kept whole in the event and bounded in the state", () => {
  const long = "x".repeat(900_000);
  const entryOf = (id: string) => {
    const details = { operationId: `o${id}`, statusCode: `s${id}`, amount: `1${id}`, currency: id };
    const told = create(PaymentSchema, { details: { paymentId: id, ...details } });
    return paymentEntry(told, { source: EventSource.CALLBACK, externalId: "e" });
  };
  const [entry, other] = [entryOf(long), entryOf(`${long}y`)];
  assert.ok(entry && other);
  for (const name of ["subjectId", "operationId", "statusCode", "currency"] as const) {
    assert.match(entry[name] ?? "", /^sha256:[0-9a-f]{64}$/, name);
    assert.notEqual(entry[name], other[name], name);
  }
  assert.equal(entry.amount, undefined);
  assert.equal(entry.event.paymentId, long);
  assert.equal(entryOf(long)?.subjectId, entry.subjectId);
  assert.equal(entryOf("x".repeat(255))?.subjectId, "x".repeat(255));

  const payout = create(PayoutSchema, { transactionId: long, status: long, externalId: "e" });
  const step = payoutEntry(payout, { source: EventSource.CALLBACK });
  assert.match(step?.status ?? "", /^sha256:/);
  assert.equal(step?.rank, 1);
  assert.equal(step?.event.transactionId, long);
});
