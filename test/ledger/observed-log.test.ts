import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  readEvent,
  rememberTrace,
  traceField,
  traceOf,
  writeEvent,
} from "../../src/ledger/stored-event.ts";
import type { Kind } from "../../src/model/kinds.ts";
import { reportTo } from "../../src/report.ts";
import type { Seal } from "../../src/secrets/seal.ts";
import { activeSpan, noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { createMemoryLedger } from "./create.ts";
import { payment, payout } from "./entries.ts";
import { callBegun, newCall, started } from "./new-call.ts";

const trace = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;
/** Runs in a span with this trace. */
function traced<T>(digit: string, work: () => T): T {
  const span = { ...noTracing.start("call", { kind: "server" }), traceparent: trace(digit) };
  return activeSpan.run(span, work);
}
const dayMs = 86_400_000;
const memory = () => createMemoryLedger({ retentionMs: dayMs });

test("every append is reported with its kind, source and outcome", async () => {
  const told: string[] = [];
  const report = reportTo({
    appended({ account, kind, externalId, source, outcome, conflict, durationMs }) {
      assert.ok(durationMs >= 0);
      const isOf = [account, kind, externalId, source, outcome];
      told.push([...isOf, ...(conflict ? ["conflict"] : [])].join(" "));
    },
  });
  const log = createMemoryLedger({ retentionMs: dayMs, report });
  await log.append("shop", payment({ status: "failure" }));
  await log.append("shop", payment({ status: "failure" }));
  await log.append("shop", payment({ status: "success", source: "response" }));
  await log.append("shop", payout());
  await log.append("shop", payment({ externalId: "o-2", source: "reconciliation" }));
  await log.close();
  await assert.rejects(log.append("shop", payout()), GatewayError);
  assert.deepEqual(told, [
    "shop payment order-1 callback stored",
    "shop payment order-1 callback duplicate",
    "shop payment order-1 response stored conflict",
    "shop payout payout-1 callback stored",
    "shop payment o-2 reconciliation stored",
    "shop payout payout-1 callback failed",
  ]);
});

test("the event of a lost call carries the trace of the call", async () => {
  const ledger = memory();
  const intent = await callBegun(ledger, "shop", { externalId: "lost" });
  await traced("a", () => ledger.end("shop", intent, { state: "unknown" }));
  const events = await ledger.history("shop", EventKind.PAYMENT, "lost", 10);
  assert.deepEqual(events.map(traceOf), [trace("a")]);
  await ledger.close();
});

/** Must not be used: the event has no secrets to encrypt. */
const seal: Seal = { close: () => assert.fail(), open: () => assert.fail() };

test("a stored event carries its trace in a field that the Event message does not define", () => {
  assert.ok(EventSchema.fields.every(({ number }) => number < traceField));
  const { event } = payment();
  const bytes = writeEvent(seal, event, trace("a"));
  const { event: read } = readEvent(seal, bytes);
  assert.equal(traceOf(read), trace("a"));
  assert.deepEqual(toBinary(EventSchema, read), toBinary(EventSchema, event));
  // A replica of an older version reads the event, and keeps the field as an unknown one.
  const old = fromBinary(EventSchema, bytes);
  assert.equal(old.externalId, event.externalId);
  // Fields of a newer version are kept as unknown fields.
  const newer = Buffer.concat([bytes, Buffer.from([0xfa, 0x3f, 1, 0x78])]);
  assert.deepEqual(readEvent(seal, newer).event.$unknown?.length, 1);
  assert.equal(traceOf(readEvent(seal, writeEvent(seal, event)).event), undefined);
  rememberTrace(event, undefined);
  assert.equal(traceOf(event), undefined);
});

test("the cause is an open call, else the last answer in the log", async () => {
  const log = memory();
  const { PAYMENT, PAYOUT } = EventKind;
  const of = (account = "shop", kind: Kind = PAYMENT) => log.causeOf(account, kind, "order-1");
  assert.equal(await of(), undefined);
  await traced("a", () => log.append("shop", payment({ source: "response" })));
  await traced("b", () => log.append("shop", payment({ status: "success" })));
  assert.equal(await of(), trace("a"), "a callback is no call");
  const call = newCall({ externalId: "order-1", trace: trace("c") });
  const intent = started(await log.begin("shop", call));
  assert.equal(await of(), trace("c"));
  await log.end("shop", intent, { state: "closed", key: "free" });
  assert.equal(await of(), trace("a"));
  assert.deepEqual([await of("other"), await of("shop", PAYOUT)], [undefined, undefined]);
  await log.close();
  assert.equal(await of(), undefined, "nor does a closed log throw");
});
