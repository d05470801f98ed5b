import { GatewayError } from "../errors.ts";
import type { Permit, TakeOptions, TokenBucket } from "./bucket.ts";

/** Receives how calls waited for tokens, for metrics. */
export interface BucketObserver {
  /** A call begins to wait; the returned function is called when the wait ends. */
  onWait(call: Pick<TakeOptions, "priority" | "caller">): (ended: WaitEnd) => void;
  /** The upstream answered Too Many Requests to a call that had its token. */
  onRejected(): void;
}

export interface WaitEnd {
  readonly waitedMs: number;
  /** Why there is no token: the code of the error. */
  readonly refused?: string;
}

/** A bucket whose waits and refusals are reported to an observer. */
export function observedBucket(bucket: TokenBucket, observer: BucketObserver): TokenBucket {
  return {
    status: () => bucket.status(),
    close: () => bucket.close(),
    async take(options) {
      const startedMs = performance.now();
      const ended = observer.onWait(options);
      let permit: Permit;
      try {
        permit = await bucket.take(options);
      } catch (error) {
        const refused = error instanceof GatewayError ? error.code : "INTERNAL";
        ended({ waitedMs: performance.now() - startedMs, refused });
        throw error;
      }
      ended({ waitedMs: performance.now() - startedMs });
      return {
        observe: (answer) => permit.observe(answer),
        release: () => permit.release(),
        rejected(answer) {
          observer.onRejected();
          permit.rejected(answer);
        },
      };
    },
  };
}
