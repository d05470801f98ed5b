/**
 * What the wire codec costs compared with plain JSON calls on the same text, and with protobuf-es's
 * JSON (which is proto JSON); and what our writer of proto JSON costs compared with protobuf-es. Run: npx node bench/wire.ts
 */
import { readFileSync } from "node:fs";
import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { OperationSchema } from "../src/gen/payments/v1/operation_pb.ts";
import { PaymentSchema } from "../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../src/gen/payments/v1/payment_service_pb.ts";
import { jsonWriterOf } from "../src/rpc/json-writer.ts";
import { decode, encode } from "../src/wire/wire.ts";

/** Keeps the results in use, so that no call is optimised away. */
export let sink: unknown;

const ROUNDS = 41;
const CALLS = 2_000;

const payment = compact("payment.json");
const paymentProtoJson = compact("payment.message.json");
const operation = compact("operation.json");
const request = compact("create-payment-cc.json");
const paymentMessage = decode(PaymentSchema, payment);
const writeProtoJson = jsonWriterOf(PaymentSchema);
const requestMessage = decode(CreatePaymentRequestSchema, request);
const paymentObject: unknown = JSON.parse(payment);
const requestObject: unknown = JSON.parse(request);

/** The first function of a group is the baseline for the others. */
const groups: Record<string, Record<string, () => unknown>> = {
  [`read a Payment, all fields (${payment.length} characters)`]: {
    "JSON.parse": () => JSON.parse(payment),
    "wire decode": () => decode(PaymentSchema, payment),
    "protobuf-es fromJsonString": () => fromJsonString(PaymentSchema, paymentProtoJson),
  },
  [`read an Operation, amount a number (${operation.length} characters)`]: {
    "JSON.parse": () => JSON.parse(operation),
    "wire decode": () => decode(OperationSchema, operation),
    "JSON.parse with a reviver": () => JSON.parse(operation, (_key, value) => value),
  },
  [`write a Payment as proto JSON (${paymentProtoJson.length} characters)`]: {
    "protobuf-es toJsonString": () => toJsonString(PaymentSchema, paymentMessage),
    "compiled writer": () => writeProtoJson(paymentMessage),
  },
  [`write a Payment, all fields (${payment.length} characters)`]: {
    "JSON.stringify": () => Buffer.from(JSON.stringify(paymentObject)),
    "wire encode": () => Buffer.from(encode(PaymentSchema, paymentMessage)),
    "protobuf-es toJsonString": () => Buffer.from(toJsonString(PaymentSchema, paymentMessage)),
  },
  [`write a CreatePayment request (${request.length} characters)`]: {
    "JSON.stringify": () => Buffer.from(JSON.stringify(requestObject)),
    "wire encode": () => Buffer.from(encode(CreatePaymentRequestSchema, requestMessage)),
  },
};

for (const [title, group] of Object.entries(groups)) {
  console.log(title);
  const medians = measure(group);
  const base = medians.values().next().value!;
  for (const [name, median] of medians) {
    const ratio = (median / base).toFixed(2).padStart(6);
    console.log(`  ${name.padEnd(28)}${median.toFixed(2).padStart(8)} µs ${ratio} x`);
  }
}

/** Median time of one call in microseconds; the functions take turns, so that noise affects all. */
function measure(group: Record<string, () => unknown>): Map<string, number> {
  const times = new Map(Object.keys(group).map((name) => [name, [] as number[]]));
  for (let round = -5; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(group)) {
      const start = process.hrtime.bigint();
      for (let call = 0; call < CALLS; call++) sink = run();
      const perCallUs = Number(process.hrtime.bigint() - start) / 1_000 / CALLS;
      if (round >= 0) times.get(name)?.push(perCallUs);
    }
  }
  return new Map([...times].map(([name, all]) => [name, all.sort((a, b) => a - b)[ROUNDS >> 1]!]));
}

function compact(fixture: string): string {
  const url = new URL(`../test/fixtures/wire/${fixture}`, import.meta.url);
  return JSON.stringify(JSON.parse(readFileSync(url, "utf8")));
}
