import type { IncomingMessage } from "node:http";

/**
 * Reads and discards the rest of a request until it ends or one of the limits is reached: closing a
 * socket with unread bytes resets it, and the client would lose the response.
 */
export function discardBody(
  req: IncomingMessage,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
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
