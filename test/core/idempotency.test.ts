import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { openOutcome, sealOutcome } from "../../src/core/idempotency.ts";
import { GatewayError } from "../../src/errors.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { keyring } from "./rig.ts";

const { answers } = keyring;
const outcomes = {
  one: { answer: create(PaymentSchema, { id: "p1" }) },
  two: { error: new GatewayError("FAILED_PRECONDITION", "declined") },
};

test("a stored answer opens for its own key and for no other", () => {
  const one = sealOutcome(answers, PaymentSchema, outcomes.one, "one");
  const two = sealOutcome(answers, PaymentSchema, outcomes.two, "two");
  assert.deepEqual(openOutcome(answers, PaymentSchema, one, "one"), outcomes.one);
  const told = openOutcome(answers, PaymentSchema, two, "two");
  assert.ok(told && "error" in told && told.error.code === "FAILED_PRECONDITION");
  assert.equal(openOutcome(answers, PaymentSchema, two, "one"), undefined);
  assert.equal(openOutcome(answers, PaymentSchema, one, "two"), undefined);
});
