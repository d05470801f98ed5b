/**
 * A service that takes a payment: it calls once, waits for the end, and handles every way in which
 * a payment can fail.
 *
 *   node examples/service.ts [external id] [card number]
 *
 * PAYMENTS_GATEWAY_URL is the rpc listener (http://127.0.0.1:4001), PAYMENTS_GATEWAY_KEY an API
 * key, if the gateway requires one.
 */
import { randomUUID } from "node:crypto";
import { createGrpcTransport } from "@connectrpc/connect-node";
import {
  createPaymentsGateway,
  credentials,
  failureOf,
  idempotencyKey,
  nameOf,
  PaymentMode,
  PaymentState,
  PaymentStateSchema,
  WaitUntil,
  watchPayment,
} from "@payments-gateway/client";

const { PAYMENTS_GATEWAY_URL: baseUrl = "http://127.0.0.1:4001", PAYMENTS_GATEWAY_KEY: token } =
  process.env;
const [externalId = `order-${randomUUID()}`, number = "4111111111111111"] = process.argv.slice(2);

const gateway = createPaymentsGateway(
  createGrpcTransport({ baseUrl, interceptors: token ? [credentials({ token })] : [] }),
);

try {
  const { payment } = await gateway.payments.createPayment(
    {
      externalId,
      amount: "25.00",
      currency: "UAH",
      mode: PaymentMode.DIRECT,
      customer: { email: "jo@example.com" },
      paymentMethod: {
        method: { case: "cc", value: { number, cvv: "123", expMonth: 12, expYear: 2031 } },
      },
      // The call returns when the customer has something to do, or when the payment is settled.
      waitUntil: WaitUntil.ACTION,
    },
    // The same order is never charged twice, even when this program is started again.
    { headers: idempotencyKey(externalId), timeoutMs: 30_000 },
  );
  if (payment?.actionRequired) console.log(`the customer goes to ${payment.action?.value}`);
} catch (error) {
  const failure = failureOf(error);
  switch (failure.kind) {
    case "outcome_unknown":
      // Do not retry: the gateway looks the outcome up, and the watch below reports it.
      console.log("the outcome is not known yet");
      break;
    case "no_answer":
      end(5, "the gateway did not answer: run this again for the same order");
      break;
    case "rejected":
      end(1, `declined: ${failure.upstream.code}`);
      break;
    case "invalid":
      end(2, failure.fields.map(({ path, message }) => `${path}: ${message}`).join("\n"));
      break;
    case "not_now":
      end(3, `nothing was done, try again in ${failure.retryAfterMs ?? 1_000} ms`);
      break;
    default:
      end(4, `${failure.kind}: ${failure.message}`);
  }
}

// The watch reconnects by itself when its connection is cut.
let state: PaymentState = PaymentState.UNKNOWN;
for await (const event of watchPayment(gateway, externalId)) {
  // `state` says whether it is paid. An operation's status does not: a cancellation succeeds too.
  state = event.state;
  if (event.resource.case !== "payment") continue;
  const { amount, currency, statusCode } = event.resource.value.details ?? {};
  console.log(`${nameOf(PaymentStateSchema, state)} ${amount} ${currency} (${statusCode})`);
}
// A decline may also come as a normal answer, or later.
if (state !== PaymentState.PAID) process.exitCode = 1;

function end(code: number, message: string): never {
  console.error(message);
  process.exit(code);
}
