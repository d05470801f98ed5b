import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { createCallbackHandler } from "../../src/callbacks/receiver.ts";
import { createCore, type RunningCore } from "../../src/core/create-core.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import { createReconciler, type Reconciler } from "../../src/reconcile/reconciler.ts";
import { noReport } from "../../src/report.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import type { Connections } from "../../src/upstream/connections.ts";
import { createUpstream } from "../../src/upstream/create-upstream.ts";
import { type Account, keyrings, merchants } from "./merchant.ts";
import { Process } from "./scheduler.ts";
import type { ReplicaStores, Stores } from "./stores/stores.ts";

/** The timeouts of the gateways in all simulations. */
export const times = {
  maxWaitMs: 1_000,
  timeoutMs: 2_000,
  /** RECONCILE_AFTER */
  afterMs: 4_000,
  /** RECONCILE_GIVE_UP */
  giveUpMs: 90_000,
} as const;

/** One gateway process: the parts that `src/app/gateway.ts` joins, without servers for its APIs. */
export class Replica {
  readonly name: string;
  readonly #stores: Stores;
  readonly #connectionsOf: (account: Account) => Connections;
  process: Process;
  #core: Promise<RunningCore> | undefined;
  #receive: ReturnType<typeof createCallbackHandler> | undefined;
  #incarnation = 0;
  readonly #reconcilers: Reconciler[] = [];

  /** @param aheadMs how far its wall clock is ahead of the true one */
  constructor(
    name: string,
    stores: Stores,
    connectionsOf: (account: Account) => Connections,
    aheadMs = 0,
  ) {
    this.name = name;
    this.#stores = stores;
    this.#connectionsOf = connectionsOf;
    this.process = new Process(name, aheadMs);
  }

  /** Rejects before `start`, and if the start failed. */
  get core(): Promise<RunningCore> {
    return this.#core ?? Promise.reject(new Error("not started"));
  }

  get isUp(): boolean {
    return !this.process.isDead && this.#receive !== undefined;
  }

  start(): void {
    if (this.#incarnation++ > 0) this.process = new Process(this.name, this.process.aheadMs);
    const { process } = this;
    process.run(() => {
      this.#core = this.#stores.open(process).then((stores) => this.#join(stores));
      // A process that cannot start is started again.
      this.#core.catch(() => {
        if (!process.isDead) setTimeout(() => this.start(), 1_000);
      });
    });
  }

  kill(): void {
    this.#receive = undefined;
    this.process.kill();
  }

  /**
   * Kills the process and closes its reconcilers: a pause of theirs that is not ended would keep
   * all their objects in memory.
   */
  close(): void {
    this.kill();
    for (const reconciler of this.#reconcilers) void reconciler.close();
  }

  #join({ ledger, bucketOf }: ReplicaStores): RunningCore {
    const accounts = new Map(
      merchants.map((account) => {
        const bucket = bucketOf(account.name);
        const connections = this.#connectionsOf(account.name);
        const upstream = createUpstream({
          ...{ account, bucket, timeoutMs: times.timeoutMs, connections },
        });
        return [account.name as string, { bucket, upstream }] as const;
      }),
    );
    const core = createCore({
      ...{ accounts, ledger, keyrings, watchTokens: undefined },
      timeouts: { maxWaitMs: times.maxWaitMs, timeoutMs: times.timeoutMs },
      callbackUrl: (name, resource) => `http://gateways/callbacks/${name}/${resource}`,
      ...{ maxStreamsPerCaller: undefined, namesExternalIds: true },
      ...{ report: noReport, tracing: noTracing },
    });
    this.#receive = createCallbackHandler({
      ...{ accounts: new Map(merchants.map((each) => [each.name, each])), ledger },
      intake: new Intake({
        budget: createMemoryBudget(),
        admission: createAdmission({ maxCalls: undefined }),
      }),
    });
    const reconciler = createReconciler({
      ...{ accounts, ledger, afterMs: times.afterMs, giveUpMs: times.giveUpMs },
      timeoutMs: times.timeoutMs,
    });
    this.#reconcilers.push(reconciler);
    return core;
  }

  /** @returns the HTTP status that a callback is answered with */
  receive(
    account: Account,
    resource: "payments" | "payouts",
    body: Buffer,
    signature: string,
  ): Promise<number> {
    return new Promise((resolve) => {
      const request = Object.assign(Readable.from([body]), {
        ...{ method: "POST", url: `/callbacks/${account}/${resource}` },
        headers: { "content-length": `${body.length}`, "x-service-signature": signature },
        socket: {},
      }) as unknown as IncomingMessage;
      let answered = 503;
      const response = {
        ...{ headersSent: false, setHeader() {}, write() {}, on() {}, off() {} },
        writeHead(status: number) {
          answered = status;
          return response;
        },
        end: () => resolve(answered),
      } as unknown as ServerResponse;
      if (this.#receive) void this.#receive(request, response);
      else resolve(503);
    });
  }
}
