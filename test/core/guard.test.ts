import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMethod, getOption } from "@bufbuild/protobuf";
import { type Caller, isScope, type Scope, scopes } from "../../src/auth/caller.ts";
import { authorize } from "../../src/core/authorize.ts";
import { type Call, type Core, type Methods, methods } from "../../src/core/core.ts";
import { guarded } from "../../src/core/guard.ts";
import { createStreamLimits } from "../../src/core/stream-limits.ts";
import { GatewayError } from "../../src/errors.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { scope as scopeOption } from "../../src/gen/payments/v1/options_pb.ts";
import {
  GetPaymentRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { RequestPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { kinds } from "../../src/model/kinds.ts";
import { noReport } from "../../src/report.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";

const everything: Caller = { name: "key:all", account: "default", scopes: new Set(scopes) };
const callOf = (caller: Caller): Call => ({
  caller,
  signal: new AbortController().signal,
  requestId: "r",
});
const quiet = {
  ...{ maxStreamsPerCaller: undefined, namesExternalIds: true },
  ...{ report: noReport, tracing: noTracing },
};
const isDenied = (reason: string) => (error: unknown) =>
  error instanceof GatewayError &&
  error.code === "PERMISSION_DENIED" &&
  error.details.reason === reason;

test("a method that declares no scope is refused to every caller", () => {
  const undeclared = Health.method.check;
  assert.equal(getOption(undeclared, scopeOption), "");
  const watcher = { ...everything, watch: { kind: EventKind.PAYMENT, externalId: "order" } };
  for (const caller of [everything, watcher, { ...everything, customer: "c" }]) {
    assert.throws(
      () => authorize(callOf(caller), undeclared, { externalId: "order" }),
      isDenied("METHOD_NOT_OPEN"),
    );
  }
  // Control: the same caller may call a method that declares its scope.
  authorize(callOf(everything), PaymentService.method.getPayment, {});
});

test("every method of the contract declares a known scope and is guarded by it", () => {
  const guardedMethods = new Set<DescMethod>(Object.values(methods));
  for (const method of services.flatMap((service) => service.methods)) {
    for (const { resource } of Object.values(kinds)) {
      const scope = getOption(method, scopeOption).replace("{kind}", resource);
      assert.ok(isScope(scope), method.name);
    }
    assert.ok(guardedMethods.has(method), method.name);
  }
});

test("ListEvents needs the scope of the kind that it lists", () => {
  const { listEvents } = EventService.method;
  const scopeFor = (...scopes: Scope[]) => callOf({ ...everything, scopes: new Set(scopes) });
  authorize(scopeFor("payments:read"), listEvents, { kind: EventKind.PAYMENT });
  authorize(scopeFor("payouts:read"), listEvents, { kind: EventKind.PAYOUT });
  for (const [call, kind] of [
    [scopeFor("payouts:read", "events:read"), EventKind.PAYMENT],
    [scopeFor("payments:read", "events:read"), EventKind.PAYOUT],
    [scopeFor("events:read"), EventKind.UNSPECIFIED],
    [scopeFor("events:read"), 99],
  ] as const) {
    assert.throws(() => authorize(call, listEvents, { kind }), isDenied("SCOPE_MISSING"));
  }
});

test("no use case runs for a caller without its scope", async () => {
  const ran: string[] = [];
  const names = Object.keys(methods) as (keyof Methods)[];
  const run = (name: string) => () => {
    ran.push(name);
    return [];
  };
  const cases = Object.fromEntries(names.map((name) => [name, run(name)])) as never;
  const core = guarded(cases as Pick<Core, keyof Methods>, quiet);
  const start = (name: keyof Methods, caller: Caller, externalId = "order") => {
    const call = core[name] as (...args: unknown[]) => unknown;
    const order = create((methods[name] as DescMethod).input, { externalId } as Record<
      string,
      unknown
    >);
    const started = call(order, callOf(caller));
    return started instanceof Promise
      ? started
      : (started as AsyncIterable<unknown>)[Symbol.asyncIterator]().next();
  };
  const nobody = { ...everything, scopes: new Set<never>() };
  for (const name of names) await assert.rejects(start(name, nobody), isDenied("SCOPE_MISSING"));
  // Nor does a watch whose request breaks the rules: test/gateway/input.test.ts has the other calls.
  for (const name of ["watchPayment", "watchPayout"] as const) {
    await assert.rejects(start(name, everything, ""), /external_id: value is required/);
  }
  assert.deepEqual(ran, []);
  // Control: it runs for a caller who may.
  await start("getPayment", everything);
  assert.deepEqual(ran, ["getPayment"]);
});

test("a stream that has ended takes up no place of its caller", async () => {
  const names = Object.keys(methods) as (keyof Methods)[];
  const cases = Object.fromEntries(names.map((name) => [name, () => []])) as never;
  const core = guarded(cases as Pick<Core, keyof Methods>, { ...quiet, maxStreamsPerCaller: 1 });
  const request = create(PaymentService.method.watchPayment.input, { externalId: "order" });
  for (let times = 0; times < 2; times++) {
    for await (const event of core.watchPayment(request, callOf(everything)))
      assert.fail(`${event.kind}`);
  }
});

test("a call's record hears its external_id in a form that a log may hold, unless that is off", async () => {
  const cases = Object.fromEntries(
    Object.keys(methods).map((name) => [name, () => []]),
  ) as unknown as Pick<Core, keyof Methods>;
  const heardOf = async (ask: (core: typeof cases, call: Call) => unknown, options = {}) => {
    const heard: string[] = [];
    const core = guarded(cases, { ...quiet, ...options });
    await ask(core, { ...callOf(everything), onAbout: (externalId) => heard.push(externalId) });
    return heard;
  };
  const read = (externalId: string) => (core: typeof cases, call: Call) =>
    core.getPayment(create(GetPaymentRequestSchema, { externalId }), call).catch(() => {});
  assert.deepEqual(await heardOf(read("order-1")), ["order-1"]);
  assert.deepEqual(await heardOf(read("1795714538123")), ["1795714538123"]);
  assert.deepEqual(await heardOf(read("4111111111111111")), ["411111******1111"]);
  const atTheCut = `${"x".repeat(120)}4111111111111111`;
  assert.deepEqual(await heardOf(read(atTheCut)), [`${"x".repeat(120)}411111**`]);
  assert.deepEqual(await heardOf(read("x".repeat(9_000))), ["x".repeat(128)]);
  assert.deepEqual(await heardOf(read("")), []);
  const payOut = (core: typeof cases, call: Call) =>
    core
      .requestPayout(
        create(RequestPayoutRequestSchema, { order: { externalId: "payout-1" } }),
        call,
      )
      .catch(() => {});
  assert.deepEqual(await heardOf(payOut), ["payout-1"]);
  assert.deepEqual(await heardOf(read("order-1"), { namesExternalIds: false }), []);
});

const callerOf = (name: string, more: Partial<Caller> = {}): Caller => ({
  name,
  account: "default",
  scopes: new Set(),
  ...more,
});
const service = callerOf("key:shop");
const customer = callerOf("customer:1", { customer: "1" });
const watcher = callerOf("watch:1", { watch: { kind: EventKind.PAYMENT, externalId: "order" } });

/** How many streams a caller may open, up to `most`. */
function placesOf(limits: ReturnType<typeof createStreamLimits>, caller: Caller, most: number) {
  let taken = 0;
  while (taken < most && limits.take(caller)) taken++;
  return taken;
}

test("a service may open 1,000 streams, a customer or watch token 20, anonymous callers any number", () => {
  const limits = createStreamLimits(undefined);
  assert.equal(placesOf(limits, service, 2_000), 1_000);
  assert.equal(placesOf(limits, callerOf("jwt:shop"), 2_000), 1_000);
  assert.equal(placesOf(limits, customer, 2_000), 20);
  assert.equal(placesOf(limits, watcher, 2_000), 20);
  assert.equal(placesOf(limits, callerOf("anonymous"), 2_000), 2_000);
});

test("a configured limit applies to every caller", () => {
  const limits = createStreamLimits(2);
  for (const caller of [service, customer, watcher, callerOf("anonymous")]) {
    assert.equal(placesOf(limits, caller, 10), 2);
  }
});

test("a stream that is released makes place for another one", () => {
  const limits = createStreamLimits(2);
  const release = limits.take(service);
  limits.take(service);
  release?.();
  assert.equal(placesOf(limits, service, 10), 1);
});
