import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import {
  ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { Caller } from "../auth/caller.ts";
import type { UnderWay } from "../collections/under-way.ts";
import type { Call, Core } from "../core/core.ts";
import type { RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import type { Report } from "../report.ts";
import { CallLife } from "./call-life.ts";
import { type CallRecord, createCallRecord, type Log, type RecordedCall } from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import { toConnectError } from "./errors.ts";
import type { Identify } from "./gate.ts";
import { type AnswerHeader, challenge, idempotencyOf, setGatedCall } from "./gated-call.ts";
import type { Asked, Protocol } from "./protocols.ts";
import type { ReceiveOptions } from "./request-body.ts";

/** What the fast paths of all calls share. */
export interface ServingOptions extends ReceiveOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Log;
  readonly report: Report;
  /** The calls in flight. */
  readonly underWay: UnderWay<AbortController>;
}

/** A method, the function that implements it, and the codec of its requests. */
export interface ServedMethod extends Pick<UniversalHandler, "service" | "method"> {
  readonly run: (request: Message, context: HandlerContext) => unknown;
  /** Decodes a request. @throws ConnectError for one that is malformed or beyond the limits */
  readonly decode: (message: Uint8Array, isBinary: boolean) => Message;
}

/**
 * One call on a fast path, from its headers to its outcome: the steps of both paths besides those
 * of their answers. By its headers the caller is identified.
 */
export class ServedCall implements RecordedCall {
  readonly service: DescService;
  readonly method: DescMethod;
  readonly protocolName: string;
  readonly requestId: string;
  /** Undefined until the caller is identified. */
  call: Call | undefined;
  readonly #options: ServingOptions;
  readonly #answerHeader: AnswerHeader;
  readonly #startedMs = performance.now();
  readonly #deadlineMs: number | undefined;
  readonly #life: CallLife;
  #headers: IncomingHttpHeaders | undefined;
  #record: CallRecord | undefined;

  constructor(
    head: RequestHead,
    { service, method }: Pick<UniversalHandler, "service" | "method">,
    { protocol, timeoutMs }: Pick<Asked<Protocol>, "protocol" | "timeoutMs">,
    answerHeader: AnswerHeader,
    options: ServingOptions,
  ) {
    this.service = service;
    this.method = method;
    this.protocolName = protocol.name;
    this.#headers = head.headers;
    this.#options = options;
    this.#answerHeader = answerHeader;
    this.#deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.#life = new CallLife(head, timeoutMs, options.underWay);
    if (method.methodKind !== "unary") this.#life.endWith(head.ending);
    this.requestId = requestIdOf(this.get(requestIdHeader));
    answerHeader.set("cache-control", "no-store");
    answerHeader.set(requestIdHeader, this.requestId);
  }

  get signal(): AbortSignal {
    return this.#life.signal;
  }

  /** A header of the request; null if it has none of this name. */
  get(name: string): string | null {
    const value = this.#headers?.[name];
    return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
  }

  /** @param hooks the callbacks by which the core acts on the call's answer */
  identified(caller: Caller, hooks: Partial<Call>): Call {
    this.call = {
      ...hooks,
      ...{ caller, signal: this.signal, requestId: this.requestId, transport: this.protocolName },
      onAbout: (externalId) => {
        if (this.#record) this.#record.externalId = externalId;
      },
      ...(this.#deadlineMs === undefined ? {} : { deadlineMs: this.#deadlineMs }),
      ...idempotencyOf(this.get("idempotency-key"), this.#answerHeader),
    };
    return this.call;
  }

  /** Leaves the call to Connect: nothing was recorded. */
  leave(): void {
    this.#life.end();
  }

  /** Begins the record of an identified call that has its message. Returns what its handler reads. */
  begin(call: Call, beat?: () => void): ContextValues {
    const record = this.#recorded();
    const values = createContextValues();
    setGatedCall(values, { record, answerHeader: this.#answerHeader, call, beat });
    return values;
  }

  /** Forgets the request: a stream lasts long. */
  releaseRequest(): void {
    this.#headers = undefined;
  }

  /** The error as its caller receives it. */
  failed(error: unknown): ConnectError {
    if (!this.call) challenge(error, this.#answerHeader);
    if (error instanceof ConnectError) withoutValues(error, this.method.input);
    return toConnectError(error, this.signal, this.#recorded().unknown);
  }

  end(failure: ConnectError | undefined): void {
    this.#life.end();
    this.#recorded().settle(failure);
  }

  #recorded(): CallRecord {
    if (!this.#record) {
      const { log, report } = this.#options;
      const options = { log, report, quiet: false };
      this.#record = createCallRecord(this, this.requestId, options, this.#startedMs);
      if (this.call) this.#record.caller = this.call.caller;
    }
    return this.#record;
  }
}
