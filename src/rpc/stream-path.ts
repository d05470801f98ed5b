import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { oncePerEvent } from "../live/once-per-event.ts";
import { cutUnlessRead, drained } from "../live/reader.ts";
import type { Outlet } from "../net/intake.ts";
import type { RequestHead } from "../net/request-head.ts";
import { toConnectError } from "./errors.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { type ArrivedCall, isBidi, type ServiceCall } from "./methods.ts";
import { envelope, envelopeHeaders, type Protocol } from "./protocols.ts";
import { type AnswerHeaders, ServedCall } from "./served-call.ts";

/**
 * Serves a stream: a POST of one message, as for a watch, or of several, answered by a stream of
 * them. The steps are those of Connect's own handlers: run, write messages, record, write the end.
 * An idle watch retains nothing of its request. `test/rpc/stream-path.test.ts` compares the answers
 * with theirs.
 */
export async function serveStream(arrived: ArrivedCall): Promise<void> {
  const served = new ServedCall(arrived);
  const answer = new StreamAnswer(arrived, served.answerHeaders);

  try {
    const messages = (await served.result(arrived, answer)) as Messages;
    served.releaseRequest();
    // Not awaited: a stream lasts long, and must not retain this function's request.
    void deliver(messages, answer, served);
  } catch (error) {
    settle(error, answer, served);
  }
}

type Messages = AsyncIterable<StreamMessage>;
/** The fields of a message. That of a watch is an event. */
type StreamMessage = { readonly event?: Event };

/** Writes a stream until its end, and records the call. Never rejects. */
async function deliver(
  messages: Messages,
  answer: StreamAnswer,
  served: ServedCall,
): Promise<void> {
  try {
    for await (const message of messages) {
      const drained = answer.write(message);
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
  answer.end(failure && toConnectError(failure));
}

/**
 * The answer of one stream: headers, messages, end; and the callbacks by which the core and the
 * service act on it.
 */
class StreamAnswer implements Partial<ServiceCall> {
  readonly #protocol: Protocol;
  readonly #encoder: StreamEncoder;
  /** Whether the request's body is still read while the answer is written. */
  readonly #readsOn: boolean;
  /** Set until the answer begins. */
  #head: RequestHead | undefined;
  #headers: AnswerHeaders;
  #outlet: Outlet | undefined;

  constructor({ head, method, asked }: ArrivedCall, headers: AnswerHeaders) {
    const { protocol, compression } = asked;
    this.#head = head;
    this.#protocol = protocol;
    this.#encoder = encoderOf(method.method.output, protocol.isJson, compression);
    this.#readsOn = isBidi(method);
    this.#headers = Object.assign(headers, envelopeHeaders(protocol, compression));
  }

  /**
   * Sends the headers now, since the first event may come late.
   * @param from where a client resumes that is cut off before it
   */
  readonly onOpen = (from: string | undefined): void => {
    if (from !== undefined) this.#headers["x-start-cursor"] = from;
    const outlet = this.#begin();
    if (outlet && "flushHeaders" in outlet) outlet.flushHeaders();
  };

  readonly push = (event: Event) => this.#push(() => this.#encoder.event(event));
  readonly beat = () => void this.#push(() => this.#encoder.heartbeat);

  /** Returns false if the response has not begun, is over or has a full buffer. */
  #push(message: () => Uint8Array): boolean {
    const outlet = this.#outlet;
    if (!outlet || isOver(outlet) || !outlet.headersSent) return false;
    if (outlet.writableNeedDrain || outlet.writableEnded) return false;
    outlet.write(message());
    return true;
  }

  /** @returns a promise to await before the next write, if the buffer is full */
  write(message: StreamMessage): Promise<void> | undefined {
    const { event } = message;
    const data = event ? this.#encoder.event(event) : this.#encoder.message(message);
    const outlet = this.#begin();
    if (!outlet || isOver(outlet) || outlet.write(data)) return undefined;
    return drained(outlet);
  }

  end(error: ConnectError | undefined): void {
    const outlet = this.#begin();
    if (!outlet || isOver(outlet)) return;
    const { data, trailers = {} } = this.#protocol.end(error);
    if (outlet instanceof ServerResponse) outlet.addTrailers(trailers);
    else outlet.once("wantTrailers", () => outlet.sendTrailers({ ...trailers }));
    outlet.end(data);
  }

  /**
   * Cuts a failed stream if its client does not read on; one that does receives the error in the
   * regular way. Over HTTP/2 the reset gives the reason: gRPC clients read ENHANCE_YOUR_CALM as
   * RESOURCE_EXHAUSTED.
   */
  readonly onFail = (error: Error): void => {
    const outlet = this.#outlet;
    if (!outlet || isOver(outlet)) return;
    const isUnread = () => !isOver(outlet) && outlet.writableLength > 0;
    cutUnlessRead(isUnread, () => {
      if (outlet instanceof ServerResponse) outlet.destroy();
      else outlet.close(resetCode(error));
    });
  };

  #begin(): Outlet | undefined {
    if (!this.#head) return this.#outlet;
    const headers = this.#headers;
    const waitForTrailers = this.#protocol.hasTrailers;
    const readsOn = this.#readsOn;
    this.#outlet = this.#head.begin({ status: 200, headers, waitForTrailers, readsOn });
    this.#head = undefined;
    this.#headers = {};
    return this.#outlet;
  }
}

function isOver({ writableFinished, destroyed }: Outlet): boolean {
  return writableFinished || destroyed;
}

function resetCode(error: Error): number {
  const tooSlow = error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED";
  return tooSlow ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_CANCEL;
}

/**
 * Encodes the messages of a stream: all protocols put the same envelope around them, so each event
 * is encoded once and shared by all its watchers.
 */
interface StreamEncoder {
  readonly event: (event: Event) => Uint8Array;
  readonly message: (message: StreamMessage) => Uint8Array;
  /** A message without an event. */
  readonly heartbeat: Uint8Array;
}

/** Encoders by output message, codec and compression. */
const encoders = new Map<string, StreamEncoder>();

function encoderOf(
  output: DescMessage,
  isJson: boolean,
  compression: Compression | null,
): StreamEncoder {
  const key = `${output.typeName} ${isJson} ${compression?.name}`;
  const known = encoders.get(key);
  if (known) return known;
  const writeJson = jsonWriterOf(output);
  const message = (init: StreamMessage) => {
    const whole = create(output, init as Record<string, unknown>);
    const data = isJson ? Buffer.from(writeJson(whole)) : toBinary(output, whole);
    return envelope(data, compression);
  };
  const event = oncePerEvent((event) => message({ event }));
  const encoder = { event, message, heartbeat: message({}) };
  encoders.set(key, encoder);
  return encoder;
}
