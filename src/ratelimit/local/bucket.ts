import type { TokenBucket } from "../bucket.ts";
import { QueuedBucket, type QueuedBucketOptions } from "../queued-bucket.ts";

export type LocalBucketOptions = Omit<QueuedBucketOptions, "shared" | "onStateChange">;

/** A token bucket in this process's memory, for one process alone. */
export function createLocalBucket(options: LocalBucketOptions): TokenBucket {
  return new QueuedBucket(options);
}
