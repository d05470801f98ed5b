/**
 * gRPC in plain JavaScript with @grpc/grpc-js and no generated code: the services come from the
 * descriptor set that `npm run clients` builds. Any gRPC stack reads such a set.
 *
 *   node examples/grpc-js.js [external id]
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const { PAYMENTS_GATEWAY_URL = "http://127.0.0.1:4001", PAYMENTS_GATEWAY_KEY } = process.env;
const [externalId = `order-${randomUUID()}`] = process.argv.slice(2);

const descriptors = readFileSync(new URL("../clients/payments-v1.binpb", import.meta.url));
const { payments } = grpc.loadPackageDefinition(
  protoLoader.loadFileDescriptorSetFromBuffer(descriptors, {
    keepCase: true,
    enums: String,
    oneofs: true,
  }),
);

const client = new payments.v1.PaymentService(
  new URL(PAYMENTS_GATEWAY_URL).host,
  grpc.credentials.createInsecure(),
);
const metadata = new grpc.Metadata();
if (PAYMENTS_GATEWAY_KEY) metadata.set("authorization", `Bearer ${PAYMENTS_GATEWAY_KEY}`);

// Start the watch before the payment exists, so that it misses no event.
const watch = client.WatchPayment({ external_id: externalId, until_final: true }, metadata);
watch.on("data", ({ event: { source, state } }) => {
  // `state` says whether it is paid; the status of a single operation does not.
  console.log(`${source} ${state}`);
});
watch.on("error", (error) => {
  console.error(`${grpc.status[error.code]}: ${error.details}`);
  process.exitCode = 1;
});
watch.on("close", () => client.close());

client.CreatePayment(
  {
    external_id: externalId,
    amount: "25.00",
    currency: "UAH",
    mode: "PAYMENT_MODE_DIRECT",
    customer: { email: "jo@example.com" },
    payment_method: {
      cc: { number: "4111111111111111", cvv: "123", exp_month: 12, exp_year: 2031 },
    },
  },
  metadata,
  { deadline: Date.now() + 30_000 },
  (error, answer) => {
    if (error) {
      console.error(`${grpc.status[error.code]}: ${error.details}`);
      process.exitCode = 1;
      watch.cancel();
      return;
    }
    // An answer does not mean that it is paid: it may be a decline. The watch shows the state.
    const { amount, payment_id } = answer.payment.details;
    console.log(`answered ${amount} as ${payment_id}`);
  },
);
