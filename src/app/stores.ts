import type { Ages } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { TokenBucket } from "../ratelimit/queued-bucket.ts";
import type { Report } from "../report.ts";
import type { Keyring } from "../secrets/keyring.ts";

/** What the ledger of each kind of store is made with. */
export interface LedgerSettings extends Ages {
  readonly report: Report;
  readonly keyringOf: (account: string) => Keyring;
}

/** The stores: in Redis for all replicas, in a directory of this process, or in its memory. */
export interface Stores {
  readonly ledger: Ledger;
  /** Why the gateway is not ready for traffic; empty while it is. */
  notReady(): readonly string[];
  bucketOf(account: string, report: Report): TokenBucket;
  /**
   * The state of Redis, for `/readyz` and the metrics; absent without Redis. The gateway stays ready
   * while Redis is away, since it still serves.
   */
  redisHealth?(): {
    readonly status: "up" | "away";
    /** Start of the outage. */
    readonly since?: Date;
    /** Replicas in sync: in a cluster those of the primary that has the fewest. */
    readonly replicas: number | undefined;
    /** Set when a failover may lose acknowledged writes, or too few replicas are there to acknowledge. */
    readonly warning: string | undefined;
  };
  /** Closes the ledger and the connections; buckets are closed by their users. */
  close(): Promise<void>;
}
