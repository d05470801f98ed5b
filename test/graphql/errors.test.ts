import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type ErrorCode, GatewayError, type GatewayErrorDetails } from "../../src/errors.ts";
import { ErrorType, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { until } from "../until.ts";
import { type Answer, serve } from "./serve.ts";
import { rawSocket } from "./socket.ts";

const upstream = create(UpstreamErrorSchema, {
  code: "insufficient_funds",
  message: "Not enough money",
  param: "amount",
  paymentId: "pay-1",
  type: ErrorType.PAYMENT_ERROR,
  errorId: "err-1",
  httpStatus: 400,
});
const upstreamJson = {
  code: "insufficient_funds",
  type: "PAYMENT_ERROR",
  param: "amount",
  paymentId: "pay-1",
  errorId: "err-1",
};

/* `http-path.test.ts` has the answers of each code, with and without an error of the service. */
test("a failed call has words for the customer in their language", async (t) => {
  const fail = () =>
    Promise.reject(new GatewayError("FAILED_PRECONDITION", "declined", { upstream }));
  const gateway = await serve(t, { getOperation: fail, createPayment: fail });
  const inUkrainian = { "accept-language": "uk-UA,uk;q=0.9,en;q=0.8" };
  const words = "На картці недостатньо коштів. Скористайтеся іншою карткою.";
  const read = `{ operation(externalId: "e", operationId: "o") { id } }`;
  const { errors } = await gateway.run(read, {}, inUkrainian);
  assert.equal(errors[0].extensions.userMessage, words);
  const pay = createPayment.replace("code type param", "userMessage");
  const { data } = await gateway.run(pay, {}, inUkrainian);
  assert.equal(data.createPayment.userMessage, words);
  const inEnglish = await gateway.run(pay, {}, { "accept-language": "de" });
  assert.match(inEnglish.data.createPayment.userMessage, /^There is not enough money/);

  const { messages, subscribe } = await rawSocket(t, gateway, { headers: inUkrainian });
  subscribe(pay);
  const { payload } = await until(() => messages[0]);
  assert.equal(payload.data.createPayment.userMessage, words);
});

const createPayment = `mutation { createPayment(input: {
  amount: "1", currency: "EUR", mode: HOSTED, externalId: "e", paymentMethod: {type: CARD}
}) {
  __typename
  ... on Error { message }
  ... on PaymentServiceError { code type param paymentId errorId retryable }
  ... on RateLimitError { retryAfterSeconds code errorId }
  ... on OutcomeUnknownError { externalId code errorId }
  ... on InvalidInputError { fields { path message } }
} }`;

async function failing(
  t: Parameters<typeof serve>[0],
  code: ErrorCode,
  details: GatewayErrorDetails,
): Promise<Answer> {
  const gateway = await serve(t, {
    createPayment: () => Promise.reject(new GatewayError(code, "what went wrong", details)),
  });
  return gateway.run(createPayment);
}

test("a mutation answers with the payments service's error", async (t) => {
  const serviceError = {
    __typename: "PaymentServiceError",
    message: "what went wrong",
    ...upstreamJson,
    retryable: false,
  };
  assert.deepEqual(await failing(t, "FAILED_PRECONDITION", { upstream }), {
    data: { createPayment: serviceError },
  });
  const again = await failing(t, "UNAVAILABLE", { upstream });
  assert.equal(again.data.createPayment.retryable, true);
  const bare = await failing(t, "ABORTED", { upstream: create(UpstreamErrorSchema) });
  assert.deepEqual(bare.data.createPayment, {
    __typename: "PaymentServiceError",
    message: "what went wrong",
    code: null,
    type: null,
    param: null,
    paymentId: null,
    errorId: null,
    retryable: true,
  });
});

const outcomeUnknown = { externalId: "e" };
const answers: readonly [ErrorCode, GatewayErrorDetails, told: object][] = [
  [
    "RESOURCE_EXHAUSTED",
    { retryAfterMs: 200 },
    { __typename: "RateLimitError", retryAfterSeconds: 1 },
  ],
  ["UNKNOWN", { outcomeUnknown }, { __typename: "OutcomeUnknownError", externalId: "e" }],
  ["DEADLINE_EXCEEDED", { outcomeUnknown }, { __typename: "OutcomeUnknownError", externalId: "e" }],
];

for (const [code, details, told] of answers) {
  test(`a mutation answers ${JSON.stringify({ code, ...details })} in its own type, whoever said so`, async (t) => {
    const message = "what went wrong";
    for (const error of [undefined, upstream]) {
      const ofService = { code: error?.code ?? null, errorId: error?.errorId ?? null };
      assert.deepEqual(await failing(t, code, { ...details, ...(error && { upstream: error }) }), {
        data: { createPayment: { ...told, message, ...ofService } },
      });
    }
  });
}
