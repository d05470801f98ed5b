import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type HandlerContext } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
import type { Call } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { countArrival } from "../net/arrival.ts";
import type { RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { turnEnd } from "../net/turn-end.ts";
import { UnderWay } from "../under-way.ts";
import { binaryWriterOf } from "./binary-writer.ts";
import { CallLife, shuttingDown } from "./call-life.ts";
import { type CallRecord, createCallRecord } from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import { toConnectError } from "./errors.ts";
import { setGatedCall } from "./gated-call.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { rateLimitOf } from "./rate-limit.ts";
import { implementations } from "./services/routes.ts";
import {
  isPlainPost,
  receiveBody,
  type StraightPath,
  type StraightPathOptions,
  textOf,
} from "./straight-path.ts";
import { dialectOf, type UnaryDialect } from "./unary-protocols.ts";

/**
 * The straight path of what nearly every call is: a unary POST of Connect, gRPC or gRPC-Web whose
 * message is not compressed. It takes the same steps as Connect's own path, without its pipelines of
 * iterators and web streams: identify, receive, decode, run the use case, encode, answer, record.
 * `test/rpc/unary-path.test.ts` sends the same requests both ways and holds the answers to be the same.
 */
export function createUnaryPath(options: StraightPathOptions): StraightPath {
  const methods = unaryMethods(options);
  const underWay = new UnderWay<AbortController>();

  async function serve(
    method: UnaryMethod,
    head: RequestHead,
    dialect: UnaryDialect,
    slot: Slot,
  ): Promise<Uint8Array | undefined> {
    const startedMs = performance.now();
    const { headers } = head;
    const deadlineMs = dialect.timeoutMs === undefined ? undefined : Date.now() + dialect.timeoutMs;
    const requestId = requestIdOf(textOf(headers, requestIdHeader));
    const answerHeaders: Record<string, string> = {
      "cache-control": "no-store",
      [requestIdHeader]: requestId,
    };
    const answerHeader = {
      set(name: string, value: string) {
        answerHeaders[name] = value;
      },
    };
    const life = new CallLife(head, dialect.timeoutMs, underWay);
    let record: CallRecord | undefined;
    let call: Call | undefined;
    let output: Uint8Array | string | undefined;
    let failure: ConnectError | undefined;
    const begin = () => {
      const facts = { ...method.names, protocolName: dialect.name, signal: life.signal };
      const begun = createCallRecord(facts, requestId, { ...options, quiet: false }, startedMs);
      if (call) begun.caller = call.caller.name;
      return begun;
    };

    try {
      const caller = await options.identify({ get: (name) => textOf(headers, name) });
      const idempotencyKey = textOf(headers, "idempotency-key");
      call = {
        caller,
        signal: life.signal,
        requestId,
        transport: dialect.name,
        onWait: slot.leave,
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
        ...(idempotencyKey === null ? {} : { idempotencyKey }),
      };
      const maxBytes = dialect.maxBodyBytes(options.readMaxBytes);
      const body = head.bodyAtHand(maxBytes) ?? (await receive(head, maxBytes, options, slot));
      const input = dialect.messageIn(body);
      if (input === undefined) {
        life.end();
        return body;
      }
      record = begin();
      const values = createContextValues();
      setGatedCall(values, { record, answerHeader, call });
      output = await method.run(input, dialect.binary, { values, signal: life.signal });
    } catch (error) {
      record ??= begin();
      const isUnknown = error instanceof GatewayError && error.code === "UNAUTHENTICATED";
      if (isUnknown && !call) answerHeader.set("www-authenticate", "Bearer");
      if (error instanceof ConnectError) withoutValues(error, method.names.method.input);
      failure = toConnectError(error, life.signal, record.unknown);
    }
    life.end();
    slot.leave();
    if (call) Object.assign(answerHeaders, rateLimitOf(options.core, call));
    record?.settle(failure);
    const answer =
      output === undefined || failure
        ? dialect.fail(failure ?? new ConnectError("internal error", Code.Internal), answerHeaders)
        : dialect.succeed(output, answerHeaders);
    const ready = answer instanceof Promise ? await answer : answer;
    await turnEnd();
    head.send(ready);
    return undefined;
  }

  return {
    callOf(handler, head) {
      const method = methods.get(handler.requestPath);
      if (!method || !isPlainPost(head)) return undefined;
      const dialect = dialectOf(head.headers, head.httpVersion);
      return dialect && ((slot) => serve(method, head, dialect, slot));
    },
    cut() {
      for (const controller of underWay) controller.abort(shuttingDown());
    },
  };
}

interface UnaryMethod {
  readonly names: Pick<UniversalHandler, "service" | "method">;
  /** Decodes the request, runs the use case and encodes its answer. */
  run(
    input: Uint8Array,
    binary: boolean,
    context: Pick<HandlerContext, "values" | "signal">,
  ): Promise<Uint8Array | string>;
}

/** By the path of their requests. */
function unaryMethods({ core, readMaxBytes, jsonOptions }: StraightPathOptions) {
  const methods = new Map<string, UnaryMethod>();
  const limits = { readMaxBytes, writeMaxBytes: 0xffff_ffff };
  for (const [service, implementation] of implementations(core)) {
    for (const method of service.methods) {
      if (method.methodKind !== "unary") continue;
      const run = implementation[method.localName as keyof typeof implementation] as Handler;
      const codec = createMethodSerializationLookup(method, undefined, jsonOptions, limits);
      const writeJson = jsonWriterOf(method.output);
      const writeBinary = binaryWriterOf(method.output);
      methods.set(`/${service.typeName}/${method.name}`, {
        names: { service, method },
        async run(input, binary, context) {
          const request = codec.getI(binary).parse(input);
          // The handlers of the services read nothing else of their context.
          const result = await run(request, context as HandlerContext);
          const answer = create(method.output, result);
          return binary ? encode(writeBinary, answer) : encode(writeJson, answer);
        },
      });
    }
  }
  return methods;
}

function encode<Text>(write: (answer: Message) => Text, answer: Message): Text {
  try {
    return write(answer);
  } catch (error) {
    throw ConnectError.from(error, Code.Internal);
  }
}

type Handler = (
  request: Message,
  context: HandlerContext,
) => Promise<Parameters<typeof create<DescMethodUnary["output"]>>[1]>;

async function receive(
  head: RequestHead,
  maxBytes: number,
  options: StraightPathOptions,
  slot: Slot,
): Promise<Buffer> {
  const arrived = countArrival(slot);
  try {
    return await receiveBody(head, maxBytes, options);
  } finally {
    arrived();
  }
}
