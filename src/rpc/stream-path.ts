import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { requireScope } from "../core/authorize.ts";
import { oncePerEvent } from "../core/once-per-event.ts";
import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { cutUnlessRead, drained } from "../live/reader.ts";
import { isUtf8Address } from "../net/address-text.ts";
import type { Outlet, RequestHead } from "../net/request-head.ts";
import { jsonWriterOf } from "./json-writer.ts";
import {
  type Asked,
  envelope,
  envelopeHeaders,
  plainMessage,
  type StreamProtocol,
} from "./protocols.ts";
import { setRateLimit } from "./rate-limit.ts";
import { decodeUnusual, notUtf8, receiveBody } from "./request-body.ts";
import {
  ServedCall,
  type ServedMethod,
  type ServiceCall,
  type ServingOptions,
} from "./served-call.ts";

/**
 * Serves a watch: a POST of one message, answered by a stream of events. The steps are those of
 * Connect's own handlers: identify, receive, decode, open, write events, record, write the end. An
 * idle watch retains nothing of its request. `test/rpc/stream-path.test.ts` compares the answers
 * with theirs.
 */
export async function serveStream(
  method: ServedMethod,
  head: RequestHead,
  asked: Asked<StreamProtocol>,
  options: ServingOptions,
): Promise<void> {
  const { protocol, compression } = asked;
  const encoder = encoderOf(method.method.output, protocol.isJson, compression);
  const answer = new StreamAnswer(head, asked, encoder);
  const served = new ServedCall(head, method, asked, answer, options);

  try {
    const caller = await options.identify(served);
    const call = served.identified(caller, callOn(answer));
    setRateLimit(answer, options.core, call, method.method);
    requireScope(caller, method.method);
    if (head.url !== method.requestPath && !isUtf8Address(head.url)) throw notUtf8();
    if (asked.error) throw asked.error;
    const maxBytes = options.readMaxBytes + protocol.extraBytes;
    const body = head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, options));
    const plain = plainMessage(body, asked);
    const request = plain
      ? method.decode(plain, !protocol.isJson)
      : await decodeUnusual(body, asked, { head, method }, options);
    const messages = method.run(request, call) as Messages;
    served.releaseRequest();
    // Not awaited: a stream lasts long, and must not retain this function's request.
    void deliver(messages, answer, served);
  } catch (error) {
    settle(error, answer, served);
  }
}

type Messages = AsyncIterable<{ readonly event?: Event }>;

/** The callbacks by which the core and the service act on a call's answer. */
function callOn(answer: StreamAnswer): Partial<ServiceCall> {
  return {
    onOpen(from) {
      // A client that is cut off before the first event resumes there.
      if (from !== undefined) answer.set("x-start-cursor", from);
      answer.open();
    },
    onFail: (error) => answer.cutIfUnread(error),
    push: (event) => answer.push(event),
    beat: () => answer.beat(),
  };
}

/** Writes a stream until its end, and records the call. Never rejects. */
async function deliver(
  messages: Messages,
  answer: StreamAnswer,
  served: ServedCall,
): Promise<void> {
  try {
    for await (const { event } of messages) {
      const drained = answer.write(event);
      if (drained) await drained;
    }
  } catch (error) {
    return settle(error, answer, served);
  }
  settle(undefined, answer, served);
}

/** Records the outcome of the call, and ends its answer with it. */
function settle(error: unknown, answer: StreamAnswer, served: ServedCall): void {
  const failure = error === undefined ? undefined : served.failed(error);
  served.end(failure);
  answer.end(failure);
}

/** The answer of one stream: headers, messages, end. */
class StreamAnswer {
  readonly #protocol: StreamProtocol;
  readonly #compression: Compression | null;
  readonly #encoder: EventEncoder;
  /** Set until the answer begins. */
  #head: RequestHead | undefined;
  #headers: Record<string, string> | undefined;
  #outlet: Outlet | undefined;

  constructor(
    head: RequestHead,
    { protocol, compression }: Omit<Asked<StreamProtocol>, "timeoutMs">,
    encoder: EventEncoder,
  ) {
    this.#head = head;
    this.#protocol = protocol;
    this.#compression = compression;
    this.#encoder = encoder;
    this.#headers = { ...envelopeHeaders(protocol, compression) };
  }

  /** Adds a header to the answer; has no effect once it has begun. */
  set(name: string, value: string): void {
    if (this.#headers) this.#headers[name] = value;
  }

  /** Sends the headers now, since the first event may come late. */
  open(): void {
    const outlet = this.#begin();
    if (outlet && "flushHeaders" in outlet) outlet.flushHeaders();
  }

  push(event: Event): boolean {
    return pushTo(this.#outlet, () => this.#encoder.event(event));
  }

  beat(): void {
    pushTo(this.#outlet, () => this.#encoder.heartbeat);
  }

  /** @returns a promise to await before the next write, if the buffer is full */
  write(event: Event | undefined): Promise<void> | undefined {
    const message = event ? this.#encoder.event(event) : this.#encoder.heartbeat;
    const outlet = this.#begin();
    if (!outlet || isOver(outlet) || outlet.write(message)) return undefined;
    return drained(outlet);
  }

  end(error: ConnectError | undefined): void {
    const outlet = this.#begin();
    if (!outlet || isOver(outlet)) return;
    const end = this.#protocol.end(error);
    if ("data" in end) {
      outlet.end(envelope(end, this.#compression));
      return;
    }
    if (outlet instanceof ServerResponse) outlet.addTrailers(end.trailers);
    else outlet.once("wantTrailers", () => outlet.sendTrailers({ ...end.trailers }));
    outlet.end();
  }

  cutIfUnread(error: Error): void {
    cutIfUnread(this.#outlet, error);
  }

  #begin(): Outlet | undefined {
    if (!this.#head) return this.#outlet;
    const headers = this.#headers ?? {};
    const waitForTrailers = this.#protocol.hasTrailers;
    this.#outlet = this.#head.begin({ status: 200, headers, waitForTrailers });
    this.#head = undefined;
    this.#headers = undefined;
    return this.#outlet;
  }
}

/** Writes a message. Returns false if the response has not begun, is over or has a full buffer. */
function pushTo(outlet: Outlet | undefined, message: () => Uint8Array): boolean {
  if (!outlet || isOver(outlet) || !outlet.headersSent) return false;
  if (outlet.writableNeedDrain || outlet.writableEnded) return false;
  outlet.write(message());
  return true;
}

/**
 * Cuts a failed stream if its client does not read on; one that does receives the error in the
 * regular way. Over HTTP/2 the reset gives the reason: gRPC clients
 * read ENHANCE_YOUR_CALM as RESOURCE_EXHAUSTED.
 */
function cutIfUnread(outlet: Outlet | undefined, error: Error): void {
  if (!outlet || isOver(outlet)) return;
  const isUnread = () => !isOver(outlet) && outlet.writableLength > 0;
  const stop = cutUnlessRead(isUnread, () => {
    if (outlet instanceof ServerResponse) outlet.destroy();
    else outlet.close(resetCode(error));
  });
  outlet.once("close", stop);
}

function isOver(outlet: Outlet): boolean {
  const isWritten = outlet instanceof ServerResponse && outlet.writableFinished;
  return isWritten || outlet.destroyed;
}

function resetCode(error: Error): number {
  const tooSlow = error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED";
  return tooSlow ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_CANCEL;
}

/**
 * Encodes the messages of a stream: all protocols put the same envelope around them, so each event
 * is encoded once and shared by all its watchers.
 */
interface EventEncoder {
  readonly event: (event: Event) => Uint8Array;
  /** A message without an event. */
  readonly heartbeat: Uint8Array;
}

/** Encoders by output message, codec and compression. */
const encoders = new Map<string, EventEncoder>();

/** @param output a message type with an `event` field */
function encoderOf(
  output: DescMessage,
  isJson: boolean,
  compression: Compression | null,
): EventEncoder {
  const key = `${output.typeName} ${isJson} ${compression?.name}`;
  const known = encoders.get(key);
  if (known) return known;
  const writeJson = jsonWriterOf(output);
  const encode = (init: { event?: Event }) => {
    const message = create(output, init as Record<string, unknown>);
    const data = isJson ? Buffer.from(writeJson(message)) : toBinary(output, message);
    return envelope({ flags: 0, data }, compression);
  };
  const encoder = { event: oncePerEvent((event) => encode({ event })), heartbeat: encode({}) };
  encoders.set(key, encoder);
  return encoder;
}
