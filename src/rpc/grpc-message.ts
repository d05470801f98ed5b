import type { OutgoingHttpHeaders } from "node:http";

/** What `grpc-message` must percent-encode: all but printable ASCII, and the percent sign. */
const unfit = /[^\x20-\x24\x26-\x7e]+/gu;

/** Encodes a text for gRPC's header `grpc-message`. */
export function encodeGrpcMessage(text: string): string {
  return text.replace(unfit, encodeURIComponent);
}

/**
 * Re-encodes the `grpc-message` in Connect's trailers. Connect encodes it like a part of a URL,
 * colons and commas included, and clients such as grpc-js would show these in their encoded form.
 */
export function withReadableMessage<T extends OutgoingHttpHeaders>(trailers: T): T {
  const message = trailers["grpc-message"];
  if (typeof message !== "string") return trailers;
  return { ...trailers, "grpc-message": encodeGrpcMessage(decodeURIComponent(message)) };
}
