import type { AccountKeys } from "../../redis/keys.ts";
import type { TokenBucket } from "../bucket.ts";
import { QueuedBucket, type QueuedBucketOptions } from "../queued-bucket.ts";
import type { SharedBudgetKey } from "./shared-budget.ts";

export interface RedisBucketOptions
  extends Omit<QueuedBucketOptions, "shared">,
    Pick<SharedBudgetKey, "client" | "replicaId"> {
  readonly keys: Pick<AccountKeys, "bucket">;
}

/** The token bucket that all replicas share through Redis. Closing it does not close the client. */
export function createRedisBucket(options: RedisBucketOptions): TokenBucket {
  const { client, keys, replicaId } = options;
  return new QueuedBucket({ ...options, shared: { client, key: keys.bucket, replicaId } });
}
