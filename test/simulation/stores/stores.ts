import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { TokenBucket } from "../../../src/ratelimit/queued-bucket.ts";
import type { Row } from "../../../src/stores/kernel.ts";
import type { Account } from "../merchant.ts";
import type { StoreNetwork } from "../network.ts";
import type { Replication } from "../plan.ts";
import type { Recorder } from "../recorder.ts";
import type { Process, Scheduler } from "../scheduler.ts";

export interface StoreOptions {
  readonly scheduler: Scheduler;
  readonly network: StoreNetwork;
  readonly recorder: Recorder;
  readonly perSecond: number;
  readonly maxWaitMs: number;
  readonly firstLookMs: number;
  readonly giveUpMs: number;
  readonly replication: Replication | undefined;
  readonly flushesAfterMs: number | undefined;
}

/** The stores of one gateway replica; each process opens them anew. */
export interface ReplicaStores {
  readonly ledger: Ledger;
  readonly bucketOf: (account: Account) => TokenBucket;
}

/** The stores of one simulation. */
export interface Stores {
  /** Must be called in the context of the process. */
  open(process: Process): Promise<ReplicaStores>;
  /** Whether no call is open, except those that are flagged for an operator. */
  isQuiet(): Promise<boolean>;
  /** The whole log of an account. */
  log(account: Account): Promise<readonly Row[]>;
  /** The budget is shared over the network, so a gateway may be cut off from it. */
  readonly sharesBudget?: boolean;
  /** Nothing reaches the server's replica for this long. */
  holdReplica?(forMs: number): void;
  /** The server's replica replaces it, without the latest writes; its clock is `aheadMs` ahead. */
  failOver?(aheadMs: number): Promise<void>;
  /** A process loses its power: what its own disk has not flushed is lost. */
  powerOff?(): void;
  close(): Promise<void>;
}
