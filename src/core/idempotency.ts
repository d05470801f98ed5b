import { GatewayError } from "../errors.ts";
import { invalidFields } from "./validate.ts";

/** One use of an `Idempotency-Key`. */
export interface KeyUse {
  readonly account: string;
  readonly method: string;
  readonly key: string;
  /** Keyed hash of the request: tells another request apart, tells nothing of its content. */
  readonly fingerprint: string;
}

/** A call under way or done, shared by all who gave its key. */
export interface Run<Answer> {
  readonly answer: Promise<Answer>;
  /** Whether the request has left: from then on the key stands for this run alone. */
  readonly sent: () => boolean;
}

/**
 * The promise of `Idempotency-Key` (contract, section 3): the same key with the same request gets
 * the first answer again, also while the first is still under way. A run that failed before its
 * request left frees the key.
 */
export interface IdempotencyStore {
  /** @throws GatewayError ALREADY_EXISTS for the same key with another request. */
  once<Answer>(use: KeyUse, start: () => Run<Answer>): Run<Answer>;
}

/** How long a key is remembered. */
export const keyRetentionMs = 24 * 3_600_000;

/** Keys of this process alone. */
export function createMemoryIdempotency(now: () => number = Date.now): IdempotencyStore {
  const uses = new Map<string, { fingerprint: string; run: Run<unknown>; sinceMs: number }>();
  return {
    once<Answer>(use: KeyUse, start: () => Run<Answer>): Run<Answer> {
      dropOlderThan(uses, now() - keyRetentionMs);
      const id = JSON.stringify([use.account, use.method, use.key]);
      const first = uses.get(id);
      if (first) {
        if (first.fingerprint !== use.fingerprint) throw usedForAnother();
        return first.run as Run<Answer>;
      }
      const run = start();
      uses.set(id, { fingerprint: use.fingerprint, run, sinceMs: now() });
      run.answer.catch(() => {
        if (!run.sent()) uses.delete(id);
      });
      return run;
    },
  };
}

/** @throws GatewayError INVALID_ARGUMENT for a key that is no key. */
export function checkKey(key: string): void {
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return;
  throw invalidFields([
    { path: "idempotency-key", message: "must be 1 to 255 visible ASCII characters" },
  ]);
}

function usedForAnother(): GatewayError {
  return new GatewayError("ALREADY_EXISTS", "the Idempotency-Key was used for another request", {
    reason: "IDEMPOTENCY_KEY_REUSED",
  });
}

/** Uses stand in the order of their age. */
function dropOlderThan(uses: Map<string, { sinceMs: number }>, ms: number): void {
  for (const [id, { sinceMs }] of uses) {
    if (sinceMs > ms) return;
    uses.delete(id);
  }
}
