import type { IncomingMessage } from "node:http";
import type { BodyBudget } from "./body-budget.ts";

export interface BodyLimits {
  readonly maxBytes: number;
  /** For the whole body. */
  readonly timeoutMs: number;
}

/** Why a body was not read to its end; `gone`: the client disconnected first. */
export type Unread = "too_large" | "slow" | "gone" | "overloaded";

/**
 * Reads a request's raw body, within a budget for all bodies. When the body is too large, too slow,
 * or dropped by the budget, reading stops and nothing of it is kept. Never rejects.
 */
export function readBody(
  req: IncomingMessage,
  { maxBytes, timeoutMs }: BodyLimits,
  budget: BodyBudget,
): Promise<Uint8Array | Unread> {
  if (Number(req.headers["content-length"]) > maxBytes) return Promise.resolve("too_large");
  return new Promise((resolve) => {
    // One buffer that grows: separate chunks of one byte would take a hundred times their size.
    let memory: Buffer = nothing;
    let counted = 0;
    let size = 0;
    let settled = false;
    const settle = (outcome: Uint8Array | Unread) => {
      settled = true;
      clearTimeout(timer);
      held.close();
      memory = nothing;
      req.off("data", onData).off("end", onEnd).off("close", onGone).pause();
      resolve(outcome);
    };
    const onData = (chunk: Buffer) => {
      const end = size + chunk.length;
      if (end > maxBytes) return settle("too_large");
      if (end > memory.length) {
        const larger = Math.min(Math.max(end, 2 * memory.length, minBytes), maxBytes);
        held.grow(larger - counted);
        if (settled) return; // The budget has dropped this body.
        counted = larger;
        // A body that arrives in one chunk, as nearly all do, is not copied.
        if (size === 0 && chunk.buffer.byteLength <= larger) {
          memory = chunk;
          size = end;
          return;
        }
        const grown = Buffer.allocUnsafeSlow(larger);
        memory.copy(grown, 0, 0, size);
        memory = grown;
      }
      chunk.copy(memory, size);
      size = end;
    };
    const onEnd = () => settle(memory.subarray(0, size));
    const onGone = () => settle("gone");
    const held = budget.open(() => settle("overloaded"));
    const timer = setTimeout(() => settle("slow"), timeoutMs);
    // The error listener stays: the connection may also fail later.
    req.on("data", onData).on("end", onEnd).on("close", onGone).on("error", onGone);
  });
}

const nothing = Buffer.alloc(0);

/** Memory of a body from its first byte on; most callbacks need no more. */
const minBytes = 4_096;

/**
 * Reads and discards the rest of a request until it ends or one of the limits is reached: closing a
 * socket with unread bytes resets it, and the client would lose the response.
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
