import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ErrorCode } from "../../src/errors.ts";
import { ErrorType, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { listedCodes, readError, readingOf } from "../../src/upstream/error-codes.ts";
import { declineMessage, userMessage } from "../../src/upstream/user-message.ts";

const outcomeUnknown = { externalId: "order-1" };
const declined = "The payment was declined. Please use another card or ask your bank.";

/** What the customer is told in English. */
function told(code: ErrorCode, init?: MessageInitShape<typeof UpstreamErrorSchema>): string {
  const upstream = init && { upstream: create(UpstreamErrorSchema, init) };
  return userMessage({ code, details: { ...upstream } }, null).message;
}

test("every code of the service has a text in each language", () => {
  assert.ok(listedCodes.length > 116);
  for (const code of listedCodes) {
    const reading = readingOf(code);
    assert.ok(reading);
    const upstream = create(UpstreamErrorSchema, { code });
    const error = { code: reading.code, details: { upstream } };
    const [en = "", uk = ""] = ["en", "uk"].map((locale) => userMessage(error, locale).message);
    assert.match(en, /^[A-Z][ -~]+\.$/, code);
    assert.match(uk, /^[А-ЯІЇЄҐ][а-яіїєґА-ЯІЇЄҐ’ ,.-]*(?:PIN-код)?[а-яіїєґА-ЯІЇЄҐ’ ,.-]*\.$/, code);
    // Letters and words that are Russian, not Ukrainian.
    assert.doesNotMatch(uk, /[ыэёъ]/i, code);
  }
});

test("a suspicion, a block or a loss of the card is told as any decline", () => {
  const internal = ["anti_fraud_check", "finmon_validation_failed", "card_is_lost_or_stolen"];
  const blocked = ["card_branch_is_blocked", "card_has_constraints", "pin_tries_exceeded"];
  for (const code of ["transaction_declined", ...internal, ...blocked]) {
    assert.equal(told("FAILED_PRECONDITION", { code }), declined, code);
  }
});

test("a code that is not listed is told by what it means", () => {
  for (const [answer, text] of [
    [{ httpStatus: 402, code: "new" }, /was declined/],
    [{ httpStatus: 400, code: "new", type: ErrorType.PAYMENT_ERROR }, /was declined/],
    [{ httpStatus: 409, code: "new" }, /not possible like this/],
    [{ httpStatus: 403, code: "constructor" }, /on our side/],
    [{ httpStatus: 400 }, /not possible like this/],
    [{ httpStatus: 503 }, /again in a moment/],
  ] as const) {
    const { code } = readError({ ...answer, asCustomer: false, movesMoney: false });
    assert.match(told(code, answer), text, JSON.stringify(answer));
  }
});

test("nobody is told to pay again while the money may have moved", () => {
  const checking = "We are checking your payment. Please do not pay again.";
  for (const code of ["UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED"] as const) {
    assert.equal(userMessage({ code, details: { outcomeUnknown } }, "en").message, checking);
    const upstream = create(UpstreamErrorSchema, { code: "card_expired", httpStatus: 500 });
    const details = { outcomeUnknown, upstream };
    assert.equal(userMessage({ code, details }, "en").message, checking);
  }
  assert.equal(told("ABORTED"), checking);
  assert.equal(told("ALREADY_EXISTS"), checking);
  assert.equal(told("FAILED_PRECONDITION", { code: "pending" }), checking);
  assert.equal(told("ALREADY_EXISTS", { code: "transaction_successful" }), checking);
  assert.equal(
    told("ALREADY_EXISTS", { code: "transaction_already_paid" }),
    "This order is paid already.",
  );
});

test("an expired token of the customer is not told as a declined card", () => {
  assert.equal(told("UNAUTHENTICATED", { code: "invalid_token" }), "Please sign in again.");
  assert.match(told("FAILED_PRECONDITION", { code: "invalid_token" }), /was declined/);
});

for (const [statusCode, text] of [
  ["insufficient_funds", "There is not enough money on the card. Please use another card."],
  ["anti_fraud_check", declined],
  ["store_is_blocked", "Something is wrong on our side. Please try again later or contact us."],
  // Of these nothing follows for a payment that failed.
  ["pending", declined],
  ["timeout", declined],
  ["transaction_successful", declined],
  ["brand_new", declined],
  [undefined, declined],
] as const) {
  test(`a payment that failed with the status code ${statusCode} is told in words`, () => {
    assert.deepEqual(declineMessage(statusCode, "pl"), { locale: "en", message: text });
    assert.equal(declineMessage(statusCode, "uk").locale, "uk");
  });
}

const languages: readonly (readonly [header: string | null | undefined, locale: string])[] = [
  [undefined, "en"],
  [null, "en"],
  ["", "en"],
  ["uk", "uk"],
  ["UK-ua", "uk"],
  ["uk-Cyrl-UA, en", "uk"],
  ["en, uk", "en"],
  ["en;q=0.5, uk;q=0.6", "uk"],
  ["en; q=0.5 , uk; Q=0.6", "uk"],
  ["de, uk;q=0.1", "uk"],
  ["de, pl", "en"],
  ["ukr", "en"],
  ["*", "en"],
  ["*, en;q=0.1", "uk"],
  ["*;q=0.1, uk;q=0.5", "uk"],
  ["uk;q=0", "en"],
  ["uk;q=soon", "en"],
  ["en;q=0, *", "uk"],
  [`${"de,".repeat(20)}uk`, "en"],
];

for (const [header, locale] of languages) {
  test(`Accept-Language ${String(header).slice(0, 30)} is answered in ${locale}`, () => {
    assert.equal(userMessage({ code: "INTERNAL", details: {} }, header).locale, locale);
  });
}
