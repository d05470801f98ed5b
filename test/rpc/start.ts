import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { create, type DescService, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  type GrpcTransportOptions,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import grpc from "@grpc/grpc-js";
import { type Caller, scopes } from "../../src/auth/caller.ts";
import type { Core } from "../../src/core/core.ts";
import {
  type GetPaymentResponse,
  GetPaymentResponseSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { noReport } from "../../src/report.ts";
import { createRpcServer, type RpcServerOptions } from "../../src/rpc/server.ts";
import { loggable } from "../../src/telemetry/loggable.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { fakeCore, type Seen } from "../fake-core.ts";
import { listen } from "../listen.ts";
import { identityOf } from "../tls.ts";

export const testTls = identityOf("localhost");

export const caller: Caller = { name: "shop", account: "default", scopes: new Set(scopes) };

/** All that the rpc listener serves, in order. */
export const serviceNames: readonly string[] = [
  ...["Payment", "Payout", "Wallet", "Subscription", "Operation", "Event"].map(
    (name) => `payments.v1.${name}Service`,
  ),
  "grpc.health.v1.Health",
  ...["v1", "v1alpha"].map((version) => `grpc.reflection.${version}.ServerReflection`),
];

export const getPaymentPath = "/payments.v1.PaymentService/GetPayment";

/** What GetPayment answers where a test asks for nothing else, and the same as JSON. */
export const known = create(GetPaymentResponseSchema, { cursor: "c1" });
export const knownJson = '{"cursor":"c1"}';
export const answers: Partial<Core> = { getPayment: async () => known };

/** A core whose GetPayment answers once it is released; `Started.calls` tells when it is asked. */
export function held(answer: Partial<GetPaymentResponse> = known) {
  const gate = Promise.withResolvers<void>();
  const getPayment = () => gate.promise.then(() => answer as GetPaymentResponse);
  return { core: { getPayment }, release: gate.resolve };
}

export interface LogRecord extends Record<string, unknown> {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
}

export type Started = Awaited<ReturnType<typeof start>>;

export type Protocol = keyof typeof transportsOf;

type Compressions = Pick<GrpcTransportOptions, "sendCompression" | "acceptCompression">;

export const wires = (["connect", "grpc", "grpcWeb"] as const).flatMap((protocol) =>
  (["1.1", "2"] as const).map((httpVersion) => ({
    protocol,
    httpVersion,
    name: `${protocol} over HTTP/${httpVersion}`,
  })),
);

const rateLimit = () => ({ limit: 10, remaining: 7, remainingForReads: 7, resetSeconds: 1 });

/** The RPC edge on a free port. The core has the methods in `answers`. */
export async function start(
  answers: Partial<Core> = {},
  options: Partial<Omit<RpcServerOptions, "tls">> & { readonly tls?: boolean } = {},
) {
  const calls: Seen[] = [];
  const records: LogRecord[] = [];
  const written = new EventEmitter();
  const write =
    (level: LogRecord["level"]) =>
    (record: object | string, message = "") => {
      records.push({ ...(loggable(record) as object), level, message });
      written.emit("record");
    };
  const { tls = false, admission = createAdmission({ maxCalls: undefined }), ...others } = options;
  const server = createRpcServer({
    core: fakeCore({ rateLimit, ...answers }, calls),
    identify: async () => caller,
    log: {
      ...{ debug: write("debug"), info: write("info"), warn: write("warn") },
      ...{ error: write("error"), fatal: write("error") },
    },
    ...{ admission, intake: new Intake({ admission }), report: noReport, tracing: noTracing },
    ...(tls && { tls: testTls }),
    ...others,
  });
  const port = await listen(server.acceptor);
  const url = `${tls ? "https" : "http"}://127.0.0.1:${port}`;
  const sessions: Http2SessionManager[] = [];

  return {
    ...{ server, port, url, records },
    /** Calls that reached the core, in order. */
    calls,
    /** Posts to a method of the payment service over HTTP/1.1: JSON, unless a header says otherwise. */
    post: (
      method: string,
      body: string | Uint8Array<ArrayBuffer>,
      headers: Record<string, string> = {},
    ) =>
      fetch(`${url}/payments.v1.PaymentService/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      }),
    /** Resolves with the first log record that fits, whether it is already written or not. */
    async logged(fits: (record: LogRecord) => boolean): Promise<LogRecord> {
      for (;;) {
        const record = records.find(fits);
        if (record) return record;
        await once(written, "record");
      }
    },
    transport(
      protocol: Protocol,
      httpVersion: "1.1" | "2",
      compression: Compressions = {},
    ): Transport {
      const nodeOptions = tls ? { ca: testTls.cert } : {};
      if (httpVersion === "1.1") {
        return transportsOf[protocol]({ baseUrl: url, httpVersion, nodeOptions, ...compression });
      }
      const sessionManager = new Http2SessionManager(url, {}, nodeOptions);
      sessions.push(sessionManager);
      return transportsOf[protocol]({ baseUrl: url, httpVersion, sessionManager, ...compression });
    },
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.abort();
      server.close();
    },
  };
}

/** The head of a call over HTTP/2, of JSON unless it says another type. */
export const http2Call = (method = "GetPayment", more: Record<string, string> = {}) => ({
  ":method": "POST",
  ":path": `/payments.v1.PaymentService/${method}`,
  "content-type": "application/json",
  ...more,
});

/** A message in an envelope of gRPC and of Connect's streams, which may tell another length. */
export function envelope(
  message: Uint8Array | string,
  flags = 0,
  length = message.length,
): Buffer<ArrayBuffer> {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, Buffer.from(message as string)]);
}

/** The error with which a call fails. */
export async function failure(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (error: unknown) => error,
  );
  return ConnectError.from(error);
}

type Done = (error: grpc.ServiceError | null, answer?: unknown) => void;

/** A call by grpc-js, whose request has the fields that are not empty. */
interface UnaryCall {
  (request: object, done: Done): void;
  (request: object, options: grpc.CallOptions, done: Done): void;
}

/** A plain grpc-js client of a service, with our own messages. */
export function grpcJsClient(
  service: DescService,
  port: number,
  options: grpc.ClientOptions = {},
  credentials = grpc.credentials.createInsecure(),
): grpc.Client & Record<"getPayment" | "createPayment", UnaryCall> {
  const definition: Record<string, grpc.MethodDefinition<Message, Message>> = {};
  for (const method of service.methods) {
    definition[method.localName] = {
      path: `/${service.typeName}/${method.name}`,
      requestStream: method.methodKind === "client_streaming",
      responseStream: method.methodKind === "server_streaming",
      requestSerialize: (init) => Buffer.from(toBinary(method.input, create(method.input, init))),
      requestDeserialize: (bytes) => fromBinary(method.input, bytes),
      responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
      responseDeserialize: (bytes) => fromBinary(method.output, bytes),
    };
  }
  const Client = grpc.makeGenericClientConstructor(definition, service.typeName);
  return new Client(`127.0.0.1:${port}`, credentials, options) as never;
}

/** The answer to a unary call of such a client. */
export function askByGrpcJs(
  client: grpc.Client,
  method: string,
  request: Message,
  metadata = new grpc.Metadata(),
): Promise<Message> {
  return new Promise((resolve, reject) => {
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes its methods at run time
    (client as any)[method](request, metadata, (error: unknown, answer: Message) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

const transportsOf = {
  connect: createConnectTransport,
  grpc: createGrpcTransport,
  grpcWeb: createGrpcWebTransport,
};
