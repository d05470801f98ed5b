import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { EventSchema } from "../src/gen/payments/v1/event_pb.ts";
import { PaymentMethodType, PaymentStatus } from "../src/gen/payments/v1/payment_pb.ts";
import { readEvent, writeEvent } from "../src/ledger/stored-event.ts";
import { deriveKeyring } from "../src/secrets/keyring.ts";
import { Secret } from "../src/secrets/secret.ts";

/**
 * What sealing (encrypting the secret fields) costs when an event is written to the log and read
 * from it, compared with plain protobuf: for an event with a card token, and for one without.
 */
const { events: seal } = await deriveKeyring("shop", [new Secret("password")]);
const eventWith = (token: string | undefined) =>
  create(EventSchema, {
    externalId: "order-1",
    paymentId: "4d5f1a0e-7b1c-4f0e-9d56-0d3a7a3f6a11",
    final: true,
    resource: {
      case: "payment",
      value: {
        externalId: "order-1",
        isSuccess: true,
        details: {
          amount: "10.10",
          currency: "UAH",
          description: "Order 1 of the shop",
          paymentId: "4d5f1a0e-7b1c-4f0e-9d56-0d3a7a3f6a11",
          status: PaymentStatus.SUCCESS,
          statusCode: "transaction_successful",
        },
        paymentMethod: {
          type: PaymentMethodType.CC_TOKEN,
          ccToken: { mask: "444455******1111", paymentSystem: "visa", ...(token && { token }) },
        },
      },
    },
  });

function microseconds(run: () => unknown): number {
  const rounds = 20_000;
  for (let i = 0; i < rounds; i++) run();
  const start = performance.now();
  for (let i = 0; i < rounds; i++) run();
  return ((performance.now() - start) / rounds) * 1_000;
}

for (const [what, token] of [
  ["with a token", "8f4c1d0a9b7e4c52a6d3e1f0b2c4d6e8"],
  ["without", undefined],
] as const) {
  const event = eventWith(token);
  const plain = toBinary(EventSchema, event);
  const stored = writeEvent(seal, event);
  const figures = {
    "write, plain": microseconds(() => toBinary(EventSchema, event)),
    "write, sealed": microseconds(() => writeEvent(seal, event)),
    "read, plain": microseconds(() => fromBinary(EventSchema, plain)),
    "read, sealed": microseconds(() => readEvent(seal, stored)),
  };
  for (const [name, us] of Object.entries(figures)) {
    console.log(`${what}: ${name} ${us.toFixed(1)} µs`);
  }
  console.log(`${what}: ${plain.length} bytes plain, ${stored.length} sealed`);
}
