import type { ChainableCommander } from "ioredis";
import { within } from "../net/timer.ts";
import { ask, storeAway } from "./ask.ts";
import type { RedisClient, RedisConnector } from "./connect.ts";
import { addressOf, connectionOf, isCluster } from "./link.ts";
import { isUnknownScript, type Script } from "./script.ts";
import {
  AllReplicas,
  type PipelineAnswers,
  someReplicas,
  type WriteConcern,
} from "./write-concern.ts";

/**
 * How many replicas must hold a write before it counts as written; `all`: every replica that could
 * be promoted.
 */
export type MinReplicas = number | "all";

/** A script that writes; all keys must share a slot. */
type Write = readonly [script: Script, keys: readonly string[], args: readonly (string | Buffer)[]];

/**
 * Runs a script that writes, and resolves once enough servers hold what it wrote, or did not in time.
 * @throws GatewayError UNAVAILABLE: the write may have happened
 */
export type Writer = (...write: Write) => Promise<Written>;

/** A script's answer; `missing` says why too few servers hold what it wrote. */
interface Written {
  readonly answer: unknown;
  readonly missing: Error | undefined;
}

/** How long replicas may take to acknowledge, in milliseconds. */
const replicasMs = 1_000;
/** The same with the round trip. */
const batchMs = replicasMs + 500;
/** Longest time of one write, including the batch before its own. */
const writeMs = 2 * batchMs;
const maxBatch = 128;

export function createWriter(redis: RedisConnector, minReplicas: MinReplicas): Writer {
  if (minReplicas !== 0) return replicated(redis, minReplicas);
  const { client } = redis;
  return async (script, keys, args) => ({
    answer: await ask(client, () => script.run(client, keys, args)),
    missing: undefined,
  });
}

/**
 * If replicas must hold the writes, they go over a dedicated connection: WAIT covers only the
 * writes of its own connection, and blocks every later command on it. Writes that arrive meanwhile
 * share the next WAIT.
 */
function replicated(redis: RedisConnector, min: Exclude<MinReplicas, 0>): Writer {
  const client = redis.dedicated();
  const concern = () => (min === "all" ? new AllReplicas(redis) : someReplicas(min));
  const batches = new Map<string, Batches>();
  return (...write) => {
    // In a cluster a pipeline can only hold writes of one slot.
    const [slot = ""] = (isCluster(client) && /\{[^{}]*\}/.exec(write[1][0] ?? "")) || [];
    const ofSlot = batches.get(slot) ?? new Batches(client, concern());
    batches.set(slot, ofSlot);
    return ofSlot.add(write).catch((error: unknown) => {
      throw storeAway(error, client);
    });
  };
}

type Waiting = PromiseWithResolvers<Written> & { readonly write: Write };

/** Writes in batches: one after the other, each with one WAIT at its end. */
class Batches {
  readonly #client: RedisClient;
  readonly #concern: WriteConcern;
  readonly #waiting = new Set<Waiting>();
  #running = false;

  constructor(client: RedisClient, concern: WriteConcern) {
    this.#client = client;
    this.#concern = concern;
  }

  add(write: Write): Promise<Written> {
    const waiting = { write, ...Promise.withResolvers<Written>() };
    this.#waiting.add(waiting);
    if (!this.#running) void this.#run();
    // Those whose callers have given up would hold up the others, and be done behind their backs.
    return within(writeMs, waiting.promise).finally(() => this.#waiting.delete(waiting));
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, maxBatch);
      for (const waiting of batch) this.#waiting.delete(waiting);
      try {
        const refused = await this.#send(batch, { first: true });
        if (refused.length > 0) await this.#send(refused, { first: false });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = false;
  }

  /**
   * Sends one batch. @returns, if `first`, the writes that did not run but may be sent again: the
   * server did not know the script, or another node serves the slot.
   */
  async #send(batch: readonly Waiting[], { first }: { first: boolean }): Promise<Waiting[]> {
    const pipeline: ChainableCommander = this.#client.pipeline();
    for (const { write } of batch) {
      const [script, keys, args] = write;
      script.queue(pipeline, keys, args, { asText: !first });
    }
    this.#concern.queue(pipeline, replicasMs);
    const key = batch[0]?.write[1][0] ?? "";
    let connection: ReturnType<typeof connectionOf>;
    const send = () => {
      // Not before: it may have to be opened first, and then leads to the primary of today.
      connection = connectionOf(this.#client, key);
      return pipeline.exec();
    };
    const answers = (await ask(this.#client, send, batchMs)) ?? [];
    const held = this.#concern.assertHeld(answers.slice(batch.length), {
      primary: addressOf(connection),
      again: (leftMs) => this.#again(key, connection, leftMs),
    });
    const missing = await held.then(
      () => undefined,
      (error: Error) => error,
    );
    let moved = false;
    const refused = batch.filter(({ resolve, reject }, at) => {
      const [error, answer] = answers[at] ?? [new Error("no answer")];
      const isElsewhere = error?.message.startsWith("MOVED") ?? false;
      moved ||= isElsewhere;
      if (first && (isElsewhere || isUnknownScript(error))) return true;
      if (error) reject(error);
      else resolve({ answer, missing });
      return false;
    });
    if (moved) await this.#findOwners();
    return refused;
  }

  /**
   * Refreshes the slots after MOVED. The driver does so only if all answers of a pipeline are
   * alike, and WAIT's differs.
   */
  async #findOwners(): Promise<void> {
    const client = this.#client;
    if (!isCluster(client)) return;
    await ask(client, () => new Promise<void>((found) => client.refreshSlotsCache(() => found())));
  }

  /** Asks `#concern` again, on the same connection: WAIT covers only that connection's writes. */
  async #again(key: string, connection: unknown, ms: number): Promise<PipelineAnswers> {
    const pipeline = this.#client.pipeline().exists(key);
    this.#concern.queue(pipeline, ms);
    if (connectionOf(this.#client, key) !== connection) throw new Error("connection lost");
    const answers =
      (await ask(this.#client, () => pipeline.exec(), ms + batchMs - replicasMs)) ?? [];
    return answers.slice(1);
  }
}
