import type { IncomingHttpHeaders } from "node:http";
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type HandlerContext } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
import type { Call, Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { countArrival } from "../net/arrival.ts";
import { plainAuthority, type RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { turnEnd } from "../net/turn-end.ts";
import { type Member, UnderWay } from "../under-way.ts";
import { binaryWriterOf } from "./binary-writer.ts";
import { type CallRecord, createCallRecord, type RpcObserver } from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import { toConnectError } from "./errors.ts";
import type { Identify } from "./gate.ts";
import { setGatedCall } from "./gated-call.ts";
import { jsonWriterOf } from "./json-writer.ts";
import type { Log } from "./log.ts";
import { rateLimitOf } from "./rate-limit.ts";
import { implementations } from "./services/routes.ts";
import type { strictUtf8 } from "./strict-utf8.ts";
import { dialectOf, type UnaryDialect } from "./unary-protocols.ts";

export interface UnaryPathOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Log;
  readonly observer?: RpcObserver | undefined;
  /** Largest request message, in bytes. */
  readonly readMaxBytes: number;
  /** Longest a body may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly jsonOptions: {
    readonly ignoreUnknownFields: boolean;
    readonly textDecoder: typeof strictUtf8;
  };
}

/**
 * The straight path of what nearly every call is: a unary POST of Connect, gRPC or gRPC-Web whose
 * message is not compressed. It takes the same steps as Connect's own path, without its pipelines of
 * iterators and web streams: identify, receive, decode, run the use case, encode, answer, record.
 * Whatever is out of the ordinary goes to Connect. `test/rpc/unary-path.test.ts` sends the same
 * requests both ways and holds the answers to be the same.
 */
export interface UnaryPath {
  /** How a request is served here; undefined for one that is Connect's to serve. */
  callOf(handler: UniversalHandler, head: RequestHead): UnaryCall | undefined;
  /** Ends the calls under way: UNAVAILABLE, since the gateway shuts down. */
  cut(): void;
}

/**
 * Serves the call. Resolves once it is answered, or with the body that was read when only Connect
 * knows how to refuse that: nothing was recorded or answered then.
 */
export type UnaryCall = (slot: Slot) => Promise<Uint8Array | undefined>;

export function createUnaryPath(options: UnaryPathOptions): UnaryPath {
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
      const atHand = head.bodyAtHand(dialect.maxBodyBytes(options.readMaxBytes));
      const body = atHand ?? (await receive(head, dialect, options, slot));
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
      if (!method || head.method !== "POST" || head.headers.expect !== undefined) return undefined;
      if (!plainAuthority.test(authorityOf(head.headers))) return undefined;
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
function unaryMethods({ core, readMaxBytes, jsonOptions }: UnaryPathOptions) {
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

/**
 * How long a call lasts: until its deadline, until its caller leaves, until the gateway shuts down.
 * Nothing aborts for a call that ended by itself.
 */
class CallLife {
  readonly #controller = new AbortController();
  readonly #member: Member<AbortController>;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(
    head: RequestHead,
    timeoutMs: number | undefined,
    underWay: UnderWay<AbortController>,
  ) {
    this.#member = underWay.add(this.#controller);
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(
        () => this.#abort(new DOMException("the deadline passed", "TimeoutError")),
        timeoutMs,
      );
    }
    head.onClose(() => {
      if (!this.#member.hasLeft) this.#abort(new GatewayError("CANCELLED", "the caller went away"));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    this.#member.leave();
    clearTimeout(this.#timer);
  }

  #abort(reason: Error): void {
    this.#controller.abort(reason);
  }
}

function receive(
  head: RequestHead,
  dialect: UnaryDialect,
  { readMaxBytes, requestTimeoutMs }: UnaryPathOptions,
  slot: Slot,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const arrived = countArrival(slot);
    const limits = { maxBytes: dialect.maxBodyBytes(readMaxBytes), timeoutMs: requestTimeoutMs };
    head.receive(limits, (body) => {
      arrived();
      if (body === "gone") reject(new GatewayError("CANCELLED", "the caller went away"));
      else if (body === "too-large") reject(tooLarge(readMaxBytes));
      else resolve(body);
    });
  });
}

function tooLarge(readMaxBytes: number): ConnectError {
  const message = `message size is larger than configured readMaxBytes ${readMaxBytes}`;
  return new ConnectError(message, Code.ResourceExhausted);
}

function shuttingDown(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the gateway is shutting down");
}

/** Whom the request is for: an address that is none is Connect's to refuse. */
function authorityOf(headers: IncomingHttpHeaders): string {
  return headers[":authority"]?.toString() ?? headers.host ?? "";
}

function textOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
}
