import { Redis, type RedisOptions } from "ioredis";
import type { ClientTlsOptions } from "../net/client-tls.ts";
import { repeat } from "../net/timer.ts";
import { readyWithin, within } from "./deadline.ts";
import { keepConnected } from "./keep-connected.ts";
import { isGone } from "./link.ts";

/** The address of a Redis server as the Sentinels write it: `host:port`. */
export type ServerAddress = string;

/** One Sentinel's view of the set. */
export interface SentinelView {
  readonly primary: ServerAddress;
  /** Grows with each failover: if two Sentinels differ, the one with the greater epoch is right. */
  readonly epoch: number;
  /** How many Sentinels it knows, itself included. */
  readonly sentinels: number;
  /** It leads a failover that is in progress. */
  readonly failingOver: boolean;
  readonly replicas: readonly SentinelReplica[];
}

export interface SentinelReplica {
  readonly address: ServerAddress;
  /** This Sentinel considers it down. */
  readonly down: boolean;
  /** Never promoted if 0; otherwise the lowest is promoted first. */
  readonly priority: number;
  /** Its replication offset when last asked: of equal priority the greatest is promoted. */
  readonly offset: number;
}

export interface SentinelsOptions {
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** The set's name. */
  readonly name: string;
  /** Set if the Sentinels and the servers that they name are reached by TLS. */
  readonly tls?: ClientTlsOptions | undefined;
  /** Called when a newer epoch has another primary than before. */
  readonly onPrimary?: (primary: ServerAddress) => void;
  /**
   * How long most Sentinels have to say otherwise without a newer epoch until they are believed, in
   * milliseconds: then they were set up anew. Default: 10 s, since they tell each other of a failover
   * every 2 s.
   */
  readonly anewMs?: number;
}

/** How long a Sentinel may take to answer, and a connection to it to open, in milliseconds. */
const answerMs = 500;
const openMs = 300;
/** The driver's errors for a connection that does not open, or is only being opened. */
const silent = /ETIMEDOUT|^Stream isn't writeable/;
/** What Sentinels say that do not know the set, or its primary. */
const unknown = /No such master|know no master/;
/** How long the others have to answer after most have, in milliseconds. */
const stragglersMs = 30;
/** How often the Sentinels are asked for the primary, in milliseconds. */
const lookMs = 500;
const reconnectMs = (tries: number) => Math.min(50 * 2 ** Math.min(tries, 6), 2_000);

/** No Sentinel names a primary. */
export class NoPrimary extends Error {
  /**
   * Whether that is so for all: none can be reached, or knows one. One that is silent, or refuses
   * this process alone, may still serve others.
   */
  readonly areAway: boolean;

  constructor(
    reason: string | undefined,
    { cause, areAway }: { cause?: unknown; areAway: boolean },
  ) {
    super(`All sentinels are unreachable: ${reason}`, { cause });
    this.areAway = areAway;
  }
}

/**
 * The Sentinels of a set, each asked over a connection that is kept open. All are asked at once, so
 * one that is frozen or gone delays nothing for longer than its time-out.
 */
export class Sentinels {
  /** How many Sentinels the configuration names. */
  readonly size: number;
  readonly #options: SentinelsOptions;
  readonly #clients: readonly Redis[];
  /** Why the last try to open a connection failed. The error of one matters only if all fail. */
  readonly #failures = new Map<Redis, Error>();
  #primary: ServerAddress | undefined;
  #epoch = -1;
  /** Since when most Sentinels have said otherwise without a newer epoch, on this process's clock. */
  #otherwiseSinceMs: number | undefined;
  readonly #looking: { close(): void };

  constructor(options: SentinelsOptions) {
    this.#options = options;
    this.size = options.addresses.length;
    const { tls } = options;
    this.#clients = options.addresses.map((address) => {
      const client = new Redis({ ...sentinelOptions, ...address, ...(tls && { tls }) });
      // That an open one broke says nothing: the next try shows what is wrong.
      client.on("error", (error) => {
        if (client.status !== "ready") this.#failures.set(client, error);
      });
      client.on("ready", () => this.#failures.delete(client));
      client.setMaxListeners(0);
      keepConnected(client, reconnectMs);
      return client;
    });
    const look = () => this.primary().catch(() => {});
    this.#looking = repeat(look, () => lookMs, lookMs);
  }

  /**
   * The address of the primary: that of the answer with the greatest epoch, among equals the one
   * that most Sentinels name.
   * @throws Error when no Sentinel answers.
   */
  async primary(): Promise<ServerAddress> {
    const name = this.#options.name;
    const asked = this.#ask(async (client) => {
      await readyWithin(openMs, client);
      return await primaryOf(client, name);
    });
    const answers = await this.#answersOf(asked);
    if (answers.length === 0) throw this.#unreachable(await Promise.allSettled(asked));
    this.#adopt(answers);
    return this.#primary ?? "";
  }

  /** Whether a server is the primary, as last heard. */
  isPrimary(address: ServerAddress | undefined): boolean {
    return address === this.#primary;
  }

  /** The views of the Sentinels that answer in time. */
  async views(): Promise<SentinelView[]> {
    const name = this.#options.name;
    const asked = this.#ask(async (client) => {
      const [reply, replicas] = await Promise.all([
        primaryOf(client, name),
        client.call("SENTINEL", "REPLICAS", name) as Promise<string[][]>,
      ]);
      return { ...reply, replicas: replicas.map(replicaOf) };
    });
    const answers = await this.#answersOf(asked);
    this.#adopt(answers);
    return answers;
  }

  close(): void {
    this.#looking.close();
    for (const client of this.#clients) client.disconnect();
  }

  #unreachable(asked: readonly PromiseSettledResult<unknown>[]): NoPrimary {
    const reasons = asked.map((answer, at) => {
      const { reason } = answer as PromiseRejectedResult;
      return this.#failures.get(this.#clients[at] as Redis) ?? (reason as Error);
    });
    const isSilent = reasons.some(
      ({ name, message }) => name === "RedisTimeout" || silent.test(message),
    );
    const cause = reasons.at(-1);
    return new NoPrimary(isSilent ? "timed out" : cause?.message, {
      cause,
      areAway:
        !isSilent && reasons.every((reason) => isGone(reason) || unknown.test(reason.message)),
    });
  }

  #ask<T>(question: (client: Redis) => Promise<T>): Promise<T>[] {
    return this.#clients.map((client) => within(answerMs, question(client)));
  }

  /** The answers that arrive until all have answered or failed, or shortly after most have answered. */
  #answersOf<T>(asked: readonly Promise<T>[]): Promise<T[]> {
    const majority = Math.floor(this.size / 2) + 1;
    const answers: T[] = [];
    let left = asked.length;
    return new Promise((resolve) => {
      const settle = () => {
        left -= 1;
        if (left === 0) resolve(answers);
        else if (answers.length === majority) setTimeout(() => resolve(answers), stragglersMs);
      };
      for (const answer of asked) {
        answer.then((value) => {
          answers.push(value);
          settle();
        }, settle);
      }
    });
  }

  #adopt(views: readonly Pick<SentinelView, "primary" | "epoch">[]): void {
    const { anewMs = 10_000 } = this.#options;
    const isOtherwise = ({ primary, epoch }: (typeof views)[number]) =>
      epoch < this.#epoch || (epoch === this.#epoch && primary !== this.#primary);
    const otherwise = views.filter(isOtherwise);
    const areOtherwise = otherwise.length > this.size / 2;
    const sinceMs = this.#otherwiseSinceMs ?? performance.now();
    const areAnew = areOtherwise && performance.now() - sinceMs > anewMs;
    this.#otherwiseSinceMs = areOtherwise && !areAnew ? sinceMs : undefined;
    if (areAnew) this.#epoch = -1;
    const supporters = (view: (typeof views)[number]) =>
      views.filter(({ primary, epoch }) => primary === view.primary && epoch === view.epoch).length;
    const [newest] = (areAnew ? otherwise : views).toSorted(
      (one, other) => other.epoch - one.epoch || supporters(other) - supporters(one),
    );
    if (!newest || newest.epoch <= this.#epoch) return;
    const moved = this.#primary !== undefined && this.#primary !== newest.primary;
    this.#epoch = newest.epoch;
    this.#primary = newest.primary;
    if (moved) this.#options.onPrimary?.(newest.primary);
  }
}

/** Longest wait for a connection to close, in milliseconds: its peer may be frozen. */
export const disconnectMs = 200;

/** The options of all connections, to Sentinels and to servers. */
export const connectionOptions = {
  connectTimeout: 1_000,
  disconnectTimeout: disconnectMs,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  noDelay: true,
  keepAlive: 10_000,
  // Closes a connection that died silently; longer than any answer may take.
  socketTimeout: 2_500,
} satisfies RedisOptions;

const sentinelOptions = {
  ...connectionOptions,
  ...{ protocol: 2, enableReadyCheck: false, retryStrategy: reconnectMs },
} satisfies RedisOptions;

/** Splits `host:port`; the host may be an IPv6 address. */
export function hostAndPort(address: ServerAddress): { host: string; port: number } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
}

/**
 * SENTINEL MASTER reports the new epoch before the new address, so the address is asked for
 * separately, and last: a failover may end between the two answers, and an old address with the
 * new epoch would be taken for the primary until the next failover.
 */
async function primaryOf(client: Redis, name: string): Promise<Omit<SentinelView, "replicas">> {
  const [reply, address] = (await Promise.all([
    client.call("SENTINEL", "MASTER", name),
    client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name),
  ])) as [string[], [string, string] | null];
  if (address === null) throw new Error(`the Sentinels know no master ${name}`);
  const field = fieldsOf(reply);
  return {
    primary: address.join(":"),
    epoch: Number(field("config-epoch")),
    sentinels: Number(field("num-other-sentinels")) + 1,
    failingOver: (field("flags") ?? "").includes("failover_in_progress"),
  };
}

function replicaOf(reply: readonly string[]): SentinelReplica {
  const field = fieldsOf(reply);
  return {
    address: `${field("ip")}:${field("port")}`,
    down: /[so]_down/.test(field("flags") ?? ""),
    priority: Number(field("slave-priority") ?? 100),
    offset: Number(field("slave-repl-offset") ?? 0),
  };
}

/** Reads a reply in which names and values alternate. */
function fieldsOf(reply: readonly string[]): (name: string) => string | undefined {
  const fields = new Map<string, string>();
  for (let at = 0; at + 1 < reply.length; at += 2) fields.set(reply[at] ?? "", reply[at + 1] ?? "");
  return (name) => fields.get(name);
}
