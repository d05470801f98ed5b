import { GatewayError } from "../../../src/errors.ts";
import { dueIndex } from "../../../src/ledger/calls.ts";
import { LedgerWithFallback } from "../../../src/ledger/fallback.ts";
import type { Permit } from "../../../src/ratelimit/bucket.ts";
import { QueuedBucket, type TokenBucket } from "../../../src/ratelimit/queued-bucket.ts";
import type { AccountKernel, Kernel } from "../../../src/stores/kernel.ts";
import { createMemoryKernel } from "../../../src/stores/memory/kernel.ts";
import { type Account, accounts } from "../merchant.ts";
import type { StoreNetwork } from "../network.ts";
import { asNobody, currentProcess, type Process, type Scheduler } from "../scheduler.ts";
import type { ReplicaStores, StoreOptions, Stores } from "./stores.ts";

const retentionMs = 7 * 86_400_000;

/**
 * The store in memory as a server that all replicas share: its data outlives them, and they reach
 * it over the simulated network.
 */
export function createMemoryStores(options: StoreOptions): Stores {
  const now = () => options.scheduler.epochMs;
  const { firstLookMs, giveUpMs, network, scheduler } = options;
  const kernel = createMemoryKernel({ retentionMs, now });
  const bucketOf = localBuckets(options);
  return {
    async open(process): Promise<ReplicaStores> {
      const ledger = new LedgerWithFallback({
        ...{ retentionMs, firstLookMs, giveUpMs },
        kernel: remoteKernel(kernel, network, scheduler, process),
        keyringOf: undefined,
        // The server is never away for all replicas, so no call goes on without it.
        ...{ isAway: () => false, answerMs: 10_000 },
      });
      return { ledger, bucketOf };
    },
    async isQuiet() {
      const one = { limit: 1 };
      const due = accounts.map((each) => kernel.account(each).range([dueIndex], one));
      return (await Promise.all(due)).flat().length === 0;
    },
    log: async (account) =>
      (await kernel.account(account).page(undefined, undefined, 100_000)).rows,
    async close() {},
  };
}

/** Each account's budget, which outlives the gateways that share it. */
export function localBuckets({ perSecond, maxWaitMs }: StoreOptions): ReplicaStores["bucketOf"] {
  const buckets = new Map<Account, TokenBucket>();
  return (account) => {
    const bucket =
      buckets.get(account) ??
      asNobody(() => new QueuedBucket({ initialLimit: perSecond, reserve: 0.2, maxWaitMs }));
    buckets.set(account, bucket);
    return remoteBucket(bucket);
  };
}

/** One budget for all replicas, whose timers belong to no process. */
function remoteBucket(bucket: TokenBucket): TokenBucket {
  return {
    source: bucket.source,
    take: (options) => {
      const process = currentProcess() as Process;
      // The next caller's timer, which is set when one leaves, belongs to no process either.
      const { signal } = options;
      const leaving = new AbortController();
      const leave = () => asNobody(() => leaving.abort(signal.reason));
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
      return new Promise((resolve, reject) => {
        asNobody(() => bucket.take({ ...options, signal: leaving.signal })).then(
          (permit) => process.run(() => resolve(remotePermit(permit))),
          (error) => process.run(() => reject(error)),
        );
      });
    },
    status: () => bucket.status(),
    get waiting() {
      return bucket.waiting;
    },
    async close() {},
  };
}

function remotePermit(permit: Permit): Permit {
  return {
    observe: (answer) => asNobody(() => permit.observe(answer)),
    rejected: (answer) => asNobody(() => permit.rejected(answer)),
  };
}

/**
 * The store as a replica reaches it: requests go over the simulated network, live events over a
 * connection that may break.
 */
function remoteKernel(
  kernel: Kernel,
  network: StoreNetwork,
  scheduler: Scheduler,
  process: Process,
): Kernel {
  const ask = <T>(what: string, work: () => Promise<T>) => network.ask(what, work);
  return {
    durable: true,
    account(name): AccountKernel {
      const store = kernel.account(name);
      return {
        read: (keys, options) => ask(`read ${keys}`, () => store.read(keys, options)),
        commit: (commit) =>
          ask(`commit ${commit.records.map(({ key }) => key)}`, () => store.commit(commit)),
        nowMs: () => store.nowMs(),
        hasClock: true,
        page: (...args) => ask("page", () => store.page(...args)),
        range: (...args) => ask("range", () => store.range(...args)),
        watch: (listener) =>
          ask("follow", async () => {
            // Events arrive in the order in which they were stored, whatever the latency of each.
            let lastMs = 0;
            const detach = await store.watch({
              row(row) {
                lastMs = Math.max(lastMs, scheduler.nowMs + network.latencyMs());
                scheduler.after(lastMs - scheduler.nowMs, () => listener.row(row), process);
              },
              fail: (error) => listener.fail(error),
            });
            const leave = () => {
              detach();
              stopCuts();
              stopDeath();
            };
            const stopCuts = network.onCut(() => {
              leave();
              process.run(() => listener.fail(cut()));
            });
            const stopDeath = process.onDeath(leave);
            return leave;
          }),
      };
    },
    async close() {},
  };
}

function cut(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the connection to the store was cut");
}
