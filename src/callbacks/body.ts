import type { IncomingMessage } from "node:http";

export interface BodyLimits {
  readonly maxBytes: number;
  /** For the whole body. */
  readonly timeoutMs: number;
}

/**
 * Reads a request's raw body. Nothing more is read once it is too large or too slow; `gone` means
 * that the client left before its end. Never rejects.
 */
export function readBody(
  req: IncomingMessage,
  { maxBytes, timeoutMs }: BodyLimits,
): Promise<Uint8Array | "too_large" | "slow" | "gone"> {
  if (Number(req.headers["content-length"]) > maxBytes) return Promise.resolve("too_large");
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (outcome: Uint8Array | "too_large" | "slow" | "gone") => {
      clearTimeout(timer);
      req.off("data", onData).off("end", onEnd).off("close", onGone).pause();
      resolve(outcome);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) settle("too_large");
      else chunks.push(chunk);
    };
    const onEnd = () => settle(Buffer.concat(chunks, size));
    const onGone = () => settle("gone");
    const timer = setTimeout(() => settle("slow"), timeoutMs);
    // The listener for errors stays: a client may also leave later.
    req.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
  });
}

/**
 * Reads on and throws away until the request ends, or one of the limits is reached: a socket that is
 * closed with bytes unread is reset, and the client would lose its answer.
 */
export function discardBody(
  req: IncomingMessage,
  { maxBytes, timeoutMs }: BodyLimits,
): Promise<void> {
  if (req.readableEnded || req.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let size = 0;
    const settle = () => {
      clearTimeout(timer);
      req.off("data", onData).off("end", settle).off("close", settle);
      resolve();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) settle();
    };
    const timer = setTimeout(settle, timeoutMs);
    req.on("data", onData).on("end", settle).on("close", settle).on("error", settle).resume();
  });
}
