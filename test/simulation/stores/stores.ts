import type { EventLog } from "../../../src/events/log.ts";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import type { IntentStore } from "../../../src/intents/store.ts";
import type { TokenBucket } from "../../../src/ratelimit/bucket.ts";
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
}

/** What a replica keeps its state in; opened anew by each process. */
export interface ReplicaStores {
  readonly log: EventLog;
  readonly intents: IntentStore;
  readonly bucket: TokenBucket;
}

/** The stores of one simulation. */
export interface Stores {
  /** Called as the process itself. */
  open(process: Process): Promise<ReplicaStores>;
  /** No call is open but those that an operator has to look at. */
  isQuiet(): Promise<boolean>;
  /** The whole log. */
  log(): Promise<readonly Event[]>;
  /** Its budget is reached over the network. */
  readonly sharesBudget?: boolean;
  /** Nothing reaches the replica of the server for so long. */
  holdReplica?(forMs: number): void;
  /** The server is replaced by its replica, which lacks what was written last. */
  failOver?(aheadMs: number): Promise<void>;
  close(): Promise<void>;
}
