import type { OutgoingHttpHeaders } from "node:http";

/** What a `grpc-message` holds percent-encoded: all but printable ASCII, and the sign itself. */
const unfit = /[^\x20-\x24\x26-\x7e]+/gu;

/** A text as gRPC's header `grpc-message` holds it. */
export function encodeGrpcMessage(text: string): string {
  return text.replace(unfit, encodeURIComponent);
}

/**
 * Trailers whose `grpc-message` Connect encoded like a part of an address, colons and commas included.
 * Clients such as grpc-js would show those as they are sent.
 */
export function withReadableMessage<T extends OutgoingHttpHeaders>(trailers: T): T {
  const message = trailers["grpc-message"];
  if (typeof message !== "string") return trailers;
  return { ...trailers, "grpc-message": encodeGrpcMessage(decodeURIComponent(message)) };
}
