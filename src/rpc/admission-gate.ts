import type { ConnectError } from "@connectrpc/connect";
import type { Admission, Slot } from "../net/admission.ts";
import { overloaded } from "../net/overloaded.ts";
import { emptyResponse, type HttpResponse, type RequestHead } from "../net/request-head.ts";
import type { Report } from "../report.ts";
import { toConnectError } from "./errors.ts";
import { askedTimeoutMs, type Protocol, streamProtocols, unaryProtocols } from "./protocols.ts";
import type { ServedMethod } from "./served-call.ts";

/**
 * Admits or refuses a call before any work on it: begins it in its turn, or answers it with a
 * refusal.
 */
export type AdmissionGate = (
  method: ServedMethod,
  head: RequestHead,
  start: (slot: Slot) => void,
) => void;

/**
 * Passes calls to `admission` by their kind, and limits the streams that need no credentials, on
 * each connection and of all together.
 * @param maxConnections of the listener; such streams may hold a tenth of them
 */
export function createAdmissionGate(
  admission: Admission,
  report: Report,
  maxConnections: number | undefined,
): AdmissionGate {
  const refuse = createRefusal(toConnectError(overloaded()));
  const openStreams = new WeakMap<object, number>();
  const maxOpenStreams = openStreamsOf(maxConnections);
  let allOpenStreams = 0;

  /** Counts a stream that needs no credentials. Returns false if its connection has too many. */
  function takesOpenStream({ connection, onClose }: RequestHead): boolean {
    const count = openStreams.get(connection) ?? 0;
    if (count >= openStreamsPerConnection || allOpenStreams >= maxOpenStreams) return false;
    openStreams.set(connection, count + 1);
    allOpenStreams += 1;
    onClose(() => {
      openStreams.set(connection, (openStreams.get(connection) ?? 1) - 1);
      allOpenStreams -= 1;
    });
    return true;
  }

  return (method, head, start) => {
    const { kind, isOpen } = method;
    if (isOpen && method.method.methodKind !== "unary" && !takesOpenStream(head)) {
      report("cut", { listener: "rpc", limit: "open_streams" });
      refuse(method, head);
      return;
    }
    admission.enter({
      kind,
      owner: head.connection,
      timeoutMs: askedTimeoutMs(head.headers),
      isGone: head.isGone,
      start,
      refuse() {
        report("refused", { listener: "rpc", kind });
        refuse(method, head);
      },
    });
  };
}

/**
 * Most streams without credentials on one connection: a client usually watches the health of one or
 * two services.
 */
export const openStreamsPerConnection = 10;

/**
 * Most streams without credentials of all connections together. Each keeps its connection from
 * counting as idle, so they may hold no more than a share of the connections.
 */
function openStreamsOf(maxConnections: number = 10_000): number {
  return Math.min(1_000, Math.max(1, Math.floor(maxConnections / 10)));
}

/** Answers a call with the error, without reading its body. */
type Refuse = (method: ServedMethod, head: RequestHead) => void;

/**
 * Encodes one error in advance for every protocol: a gateway that has more calls than it can serve
 * must spend next to nothing on those that it refuses. A content type of the other kind of call
 * gets 415, as from Connect, and an unknown one the answer of JSON.
 */
function createRefusal(error: ConnectError): Refuse {
  // Without a compression, the answer is there at once.
  const answersOf = (protocols: ReadonlyMap<string, Protocol>) =>
    new Map(
      [...protocols].map(([type, { fail }]) => [type, fail(error, {}, null) as HttpResponse]),
    );
  const unary = answersOf(unaryProtocols);
  const streams = answersOf(streamProtocols);
  const byDefault = unary.get("application/json") as HttpResponse;
  const unsupported = emptyResponse(415);

  return ({ method }, head) => {
    const [answers, others] = method.methodKind === "unary" ? [unary, streams] : [streams, unary];
    const type = head.headers["content-type"] ?? "";
    const other = others.has(type) ? unsupported : byDefault;
    head.answer(answers.get(type) ?? other);
  };
}
