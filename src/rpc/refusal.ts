import type { ConnectError } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { HttpResponse, RequestHead } from "../net/request-head.ts";
import { envelope, envelopeHeaders, streamProtocols, unaryProtocols } from "./protocols.ts";

/** Answers a call with the error, without reading its body. */
export type Refuse = (handler: Pick<UniversalHandler, "method">, head: RequestHead) => void;

/**
 * Encodes one error in advance for every protocol: a gateway that has more calls than it can serve
 * must spend next to nothing on those that it refuses. A content type of the other kind of call
 * gets 415, as from Connect, and an unknown one the answer of JSON.
 */
export function createRefusal(error: ConnectError): Refuse {
  const unary = new Map(
    // Without a compression, the answer is there at once.
    [...unaryProtocols].map(([type, { fail }]) => [type, fail(error, {}, null) as HttpResponse]),
  );
  const streams = new Map<string, HttpResponse>(
    [...streamProtocols].map(([type, protocol]) => {
      const end = protocol.end(error);
      const headers = envelopeHeaders(protocol, null);
      if ("data" in end) return [type, { status: 200, headers, body: envelope(end, null) }];
      // Without a body, gRPC's trailers go as headers ("Trailers-Only").
      return [type, { status: 200, headers: { ...headers, ...end.trailers }, body: "" }];
    }),
  );
  const byDefault = unary.get("application/json") as HttpResponse;
  const unsupported: HttpResponse = { status: 415, headers: {}, body: "" };

  return ({ method }, head) => {
    const [answers, others] = method.methodKind === "unary" ? [unary, streams] : [streams, unary];
    const type = head.headers["content-type"] ?? "";
    const other = others.has(type) ? unsupported : byDefault;
    const { status, headers, body } = answers.get(type) ?? other;
    head.answer(status, headers, body === "" ? undefined : (body as Uint8Array));
  };
}
