import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { loggable } from "../../src/telemetry/loggable.ts";

test("a message is logged as its type name alone", () => {
  const payment = create(CreatePaymentRequestSchema, { externalId: "4111111111111111" });
  assert.deepEqual(loggable([{ payment }]), [{ payment: "[payments.v1.CreatePaymentRequest]" }]);
  const foreign = { $typeName: "other.v1.Card", number: "4111111111111111" };
  assert.equal(loggable(foreign), "[other.v1.Card]");
});

test("an error is logged without its text, which may quote anything", () => {
  const cause = new TypeError("4111111111111111\n    at 90210042 (file:///90210042:1:1)");
  const record = loggable(new Error("bad 90210042", { cause })) as Record<string, unknown>;
  assert.equal(record.name, "Error");
  assert.match((record.frames as string[])[0] ?? "", /^at .*loggable\.test\.ts:\d+:\d+/);
  assert.doesNotMatch(JSON.stringify(record), /90210042|41111111/);
  assert.equal((record.cause as { name: string }).name, "TypeError");

  const thrownText = loggable(new Error("x", { cause: "4111111111111111" }));
  assert.doesNotMatch(JSON.stringify(thrownText), /41111111/);
  const several = loggable(new AggregateError([cause], "90210042"));
  assert.doesNotMatch(JSON.stringify(several), /90210042|41111111/);
  const changed = new Error("bad\n    at 90210042 (file:///90210042:1:1)");
  // The first read of `stack` creates its text, which keeps the message of that moment.
  assert.match(changed.stack ?? "", /90210042/);
  changed.message = "worse";
  assert.doesNotMatch(JSON.stringify(loggable(changed)), /90210042/);
  const looped = new Error("a");
  looped.cause = looped;
  assert.ok(JSON.stringify(loggable(looped)).length < 100_000);
});

test("a GatewayError is logged with its text, a system error with its call and address", () => {
  const gateway = new GatewayError("NOT_FOUND", "no such payment", {
    reason: "GONE",
    cause: new Error("90210042"),
  });
  const { frames: _, cause, ...record } = loggable(gateway) as Record<string, unknown>;
  assert.deepEqual(record, {
    name: "GatewayError",
    code: "NOT_FOUND",
    message: "no such payment",
    reason: "GONE",
  });
  assert.doesNotMatch(JSON.stringify(cause), /90210042/);
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), {
    code: "ECONNREFUSED",
    syscall: "connect",
    address: "127.0.0.1",
    port: 1,
  });
  const { frames: __, ...system } = loggable(refused) as Record<string, unknown>;
  assert.deepEqual(system, {
    name: "Error",
    code: "ECONNREFUSED",
    syscall: "connect",
    address: "127.0.0.1",
    port: 1,
  });
});

test("class instances, bytes and functions are logged as short descriptions", () => {
  const headers = new Headers({ authorization: "Bearer 987" });
  const values = {
    headers,
    bytes: Buffer.from("987"),
    map: new Map([["987", 1]]),
    call: () => 987,
  };
  assert.deepEqual(loggable({ ...values, big: 1n, secret: new Secret("987") }), {
    headers: "[Headers]",
    bytes: "[3 bytes]",
    map: "[Map]",
    call: "[function]",
    big: "1",
    secret: "[redacted]",
  });
});

test("the logger redacts secrets however it is called", () => {
  const lines: string[] = [];
  const log = createLogger("trace", { write: (line) => void lines.push(line) });
  const error = new Error("CANARY", { cause: { request: new Secret("CANARY") } });
  const secret = create(CreatePaymentRequestSchema, {
    paymentMethod: { method: { case: "ccToken", value: { token: "CANARY" } } },
  });
  log.error(error);
  log.error({ err: error });
  log.error({ err: error }, "text");
  log.warn({ cause: error, deep: [{ secret }] }, "text");
  log.debug(secret, "text");
  log.debug({ secret, error, key: new Secret("CANARY") }, "text");
  assert.equal(lines.length, 6);
  for (const line of lines) assert.ok(JSON.parse(line).msg, line);
  assert.doesNotMatch(lines.join(""), /CANARY/);

  log.info("CANARY");
  assert.match(lines.join(""), /CANARY/, "the search finds what leaks");
});
