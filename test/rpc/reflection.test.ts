import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { create, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { GatewayError } from "../../src/errors.ts";
import {
  ServerReflection,
  type ServerReflectionRequest,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "../../src/gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { GetPaymentResponseSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { reportTo } from "../../src/report.ts";
import { createAnswers } from "../../src/rpc/services/reflection.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { type Started, serviceNames, start } from "./start.ts";

const buf = new URL("../../node_modules/.bin/buf", import.meta.url).pathname;

/** Refuses every caller: the schema must not need one. */
const identify = async () => {
  throw new GatewayError("UNAUTHENTICATED", "nobody is known here");
};

type Question = ServerReflectionRequest["messageRequest"];

/** Asks all questions on one stream. */
async function ask(started: Started, questions: readonly Question[], version = ServerReflection) {
  const client = createClient(version, started.transport("grpc", "2"));
  async function* requests() {
    for (const messageRequest of questions) yield { host: "h", messageRequest };
  }
  const answers = [];
  for await (const answer of client.serverReflectionInfo(requests())) {
    assert.equal(answer.validHost, "h");
    answers.push(answer.messageResponse);
  }
  return answers;
}

type Answer = Awaited<ReturnType<typeof ask>>[number];

function filesOf(answer: Answer | undefined): string[] {
  assert.equal(answer?.case, "fileDescriptorResponse");
  return answer.value.fileDescriptorProto.map(
    (bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name,
  );
}

function failureOf(answer: Answer | undefined): Code {
  assert.equal(answer?.case, "errorResponse");
  return answer.value.errorCode;
}

const symbols: Readonly<Record<string, string>> = {
  "payments.v1.PaymentService": "payments/v1/payment_service.proto",
  "payments.v1.PaymentService.CreatePayment": "payments/v1/payment_service.proto",
  "payments.v1.CreatePaymentRequest": "payments/v1/payment_service.proto",
  "payments.v1.EventKind": "payments/v1/event.proto",
  "payments.v1.scope": "payments/v1/options.proto",
  "grpc.health.v1.HealthCheckResponse.ServingStatus": "grpc/health/v1/health.proto",
  "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
  "buf.validate.FieldRules": "buf/validate/validate.proto",
  // The types of error details, which no method names.
  "payments.v1.UpstreamError": "payments/v1/error.proto",
  "payments.v1.OutcomeUnknown": "payments/v1/error.proto",
  "google.rpc.BadRequest": "google/rpc/error_details.proto",
  "google.rpc.ErrorInfo": "google/rpc/error_details.proto",
  "google.rpc.RetryInfo": "google/rpc/error_details.proto",
};

for (const version of [ServerReflection, ServerReflectionV1Alpha]) {
  test(`${version.typeName} finds every kind of symbol`, async () => {
    await using started = await start({}, { identify });
    const questions = Object.keys(symbols).map(
      (value): Question => ({ case: "fileContainingSymbol", value }),
    );
    const answers = await ask(started, questions, version as typeof ServerReflection);
    assert.deepEqual(
      answers.map((answer) => filesOf(answer)[0]),
      Object.values(symbols),
    );
  });
}

test("a file is found by its name, with all files that it imports", async () => {
  await using started = await start();
  const [answer] = await ask(started, [
    { case: "fileByFilename", value: "payments/v1/event_service.proto" },
  ]);
  const files = filesOf(answer);
  for (const name of [
    "payments/v1/event_service.proto",
    "payments/v1/event.proto",
    "payments/v1/payment.proto",
    "payments/v1/options.proto",
    "buf/validate/validate.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/descriptor.proto",
  ]) {
    assert.ok(files.includes(name), name);
  }
  assert.equal(new Set(files).size, files.length);
});

test("an unknown symbol or file is NOT_FOUND, a question about extensions UNIMPLEMENTED, and the stream goes on", async () => {
  await using started = await start();
  const answers = await ask(started, [
    { case: "fileContainingSymbol", value: "payments.v1.Nothing" },
    { case: "fileByFilename", value: "no/such.proto" },
    { case: "allExtensionNumbersOfType", value: "payments.v1.Event" },
    { case: undefined },
    { case: "listServices", value: "" },
  ]);
  const list = answers.pop();
  assert.deepEqual(answers.map(failureOf), [
    ...[Code.NotFound, Code.NotFound, Code.Unimplemented, Code.InvalidArgument],
  ]);
  assert.equal(list?.case, "listServicesResponse");
  const names = list.value.service.map(({ name }) => name);
  assert.deepEqual(names, serviceNames);
});

test("buf curl calls a method without a schema of its own", async () => {
  const known = create(GetPaymentResponseSchema, {
    cursor: "c1",
    payment: { externalId: "order-1" },
  });
  await using started = await start({ getPayment: async () => known });
  for (const protocol of ["grpc", "grpcweb", "connect"]) {
    const { stdout } = await promisify(execFile)(buf, [
      "curl",
      "--http2-prior-knowledge",
      "--protocol",
      protocol,
      "--data",
      '{"external_id":"order-1"}',
      `${started.url}/payments.v1.PaymentService/GetPayment`,
    ]);
    assert.deepEqual(JSON.parse(stdout), { payment: { externalId: "order-1" }, cursor: "c1" });
  }
});

test("a response is encoded once for all questions with the same answer", () => {
  const answerOf = createAnswers(services);
  const byName = answerOf({ case: "fileByFilename", value: "payments/v1/payment_service.proto" });
  const bySymbol = answerOf({
    case: "fileContainingSymbol",
    value: "payments.v1.PaymentService.CreatePayment",
  });
  assert.equal(byName.case, "fileDescriptorResponse");
  assert.equal(byName, bySymbol);
});

const questions = (count: number) =>
  Array.from({ length: count }, (): Question => ({ case: "listServices", value: "" }));

test("each question passes admission like a call, and is refused when the process is full", async () => {
  const admission = createAdmission({ maxCalls: 1_000 });
  let entered = 0;
  let full = false;
  const refused: string[] = [];
  let counted = 0;
  await using started = await start(
    {},
    {
      admission: {
        enter(arrival) {
          if (arrival.kind === "exempt") return admission.enter(arrival);
          entered++;
          if (full && entered > 4) return arrival.refuse(arrival.kind);
          admission.enter(arrival);
        },
        get inFlight() {
          return admission.inFlight;
        },
      },
      report: reportTo({
        refused: ({ kind }) => void refused.push(kind),
        rpcEnded: () => void counted++,
      }),
    },
  );
  await ask(started, questions(3));
  assert.equal(entered, 4, "the stream, and three questions");
  assert.equal(counted, 1, "in metrics, the stream is one call");
  assert.equal(admission.inFlight, 0);
  entered = 0;
  full = true;
  await assert.rejects(ask(started, questions(5)), { code: Code.ResourceExhausted });
  assert.deepEqual(refused, ["other"]);
  assert.equal(admission.inFlight, 0);
});

test("questions of more than 64 KiB on one stream end it with RESOURCE_EXHAUSTED", async () => {
  await using started = await start({}, { identify });
  const question: Question = { case: "fileByFilename", value: "x".repeat(3_000) };
  const questions = (count: number) => Array<Question>(count).fill(question);
  assert.equal((await ask(started, questions(20))).length, 20);
  await assert.rejects(ask(started, questions(30)), { code: Code.ResourceExhausted });
});

for (const [how, openStreamMs, headers, code] of [
  ["UNAVAILABLE when it has lasted long enough", 1_500, {}, Code.Unavailable],
  ["DEADLINE_EXCEEDED at its deadline", 60_000, { "grpc-timeout": "50m" }, Code.DeadlineExceeded],
] as const) {
  test(`a stream on which no question comes any more ends with ${how}`, async () => {
    await using started = await start({}, { identify, limits: { openStreamMs } });
    const client = createClient(ServerReflection, started.transport("grpc", "2"));
    const never = Promise.withResolvers<void>();
    async function* requests() {
      const messageRequest: Question = { case: "listServices", value: "" };
      yield { host: "h", messageRequest };
      await never.promise;
    }
    // The deadline as a header alone: the client has no timer of its own, which could fire first.
    const all = async () => {
      for await (const _ of client.serverReflectionInfo(requests(), { headers }));
    };
    await assert.rejects(all, { code });
    never.resolve();
  });
}
