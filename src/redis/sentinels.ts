import { Redis, type RedisOptions } from "ioredis";
import { StoreTimeout } from "../errors.ts";
import type { ClientTlsOptions } from "../net/client-tls.ts";
import { systemCode } from "../net/system-errors.ts";
import { repeat, within } from "../net/timer.ts";
import { keepConnected } from "./keep-connected.ts";
import { isGone, type ServerAddress } from "./link.ts";
import { readyWithin } from "./ready-within.ts";

/** One Sentinel's view of the set. */
export interface SentinelView {
  readonly primary: ServerAddress;
  /** Grows with each failover: if two Sentinels differ, the one with the greater epoch is right. */
  readonly epoch: number;
  /** How many Sentinels it knows, itself included; at least as many as the configuration names. */
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
/**
 * How long most Sentinels have to say otherwise without a newer epoch until they are believed, in
 * milliseconds: then they were set up anew. They tell each other of a failover every 2 s.
 */
const anewMs = 10_000;
/** How often the Sentinels are asked for the primary, in milliseconds. */
const lookMs = 500;

/** No Sentinel names a primary. */
export class NoPrimary extends Error {
  /**
   * Whether that is so for all: none can be reached, or knows one. One that is silent, or refuses
   * this process alone, may still serve others.
   */
  readonly areAway: boolean;

  /** @param reasons of each Sentinel. By TLS one without room closes a connection before it says so */
  constructor(reasons: readonly Error[], isTls: boolean) {
    const isSilent = reasons.some(
      (reason) => reason instanceof StoreTimeout || silent.test(reason.message),
    );
    const cause = reasons.at(-1);
    super(`All sentinels are unreachable: ${isSilent ? "timed out" : cause?.message}`, { cause });
    const isAway = (reason: Error) =>
      unknown.test(reason.message) ||
      (isGone(reason) && !(isTls && systemCode(reason) === "ECONNRESET"));
    this.areAway = !isSilent && reasons.every(isAway);
  }
}

/**
 * The Sentinels of a set, each asked over a connection that is kept open. All are asked at once, so
 * one that is frozen or gone delays nothing for longer than its time-out.
 */
export class Sentinels {
  readonly #options: SentinelsOptions;
  readonly #clients: readonly Redis[];
  /** Why the last try to open a connection failed. The error of one matters only if all fail. */
  readonly #failures = new Map<Redis, Error>();
  #primary: ServerAddress | undefined;
  #epoch = -1;
  /** When most Sentinels did not say otherwise last, on this process's clock. */
  #agreedMs = 0;
  readonly #looking: { close(): void };

  constructor(options: SentinelsOptions) {
    this.#options = options;
    const { addresses, tls } = options;
    const all = { ...connectionOptions, protocol: 2, enableReadyCheck: false } as const;
    this.#clients = addresses.map((address) => {
      const client = new Redis({ ...all, ...address, ...(tls && { tls }) });
      // That an open one broke says nothing: the next try shows what is wrong.
      client.on("error", (error) => {
        if (client.status !== "ready") this.#failures.set(client, error);
      });
      client.on("ready", () => this.#failures.delete(client));
      client.setMaxListeners(0);
      keepConnected(client);
      return client;
    });
    const look = () => this.primary().catch(() => {});
    this.#looking = repeat(look, () => lookMs, lookMs);
  }

  /**
   * The address of the primary: that of the answer with the greatest epoch, among equals the one
   * that most Sentinels name.
   * @throws NoPrimary if no Sentinel answers
   */
  async primary(): Promise<ServerAddress> {
    await this.views();
    return this.#primary ?? "";
  }

  /** Whether a server is the primary, as last heard. */
  isPrimary(address: ServerAddress | undefined): boolean {
    return address === this.#primary;
  }

  /**
   * The views of the Sentinels that answer in time: until all have answered or failed, or shortly
   * after most have answered.
   * @throws NoPrimary if no Sentinel answers
   */
  async views(): Promise<readonly SentinelView[]> {
    const views: SentinelView[] = [];
    const most = Promise.withResolvers<void>();
    const asked = this.#clients.map(async (client) => {
      views.push(await within(answerMs, this.#viewOf(client)));
      if (views.length > this.#clients.length / 2) setTimeout(most.resolve, stragglersMs);
    });
    const all = Promise.allSettled(asked);
    await Promise.race([all, most.promise]);
    const answered = [...views];
    this.#adopt(answered);
    if (answered.length > 0) return answered;
    const failed = (await all) as PromiseRejectedResult[];
    throw new NoPrimary(
      failed.map(({ reason }, at) => this.#failures.get(this.#clients[at] as Redis) ?? reason),
      this.#options.tls !== undefined,
    );
  }

  close(): void {
    this.#looking.close();
    for (const client of this.#clients) client.disconnect();
  }

  /**
   * SENTINEL MASTER reports the new epoch before the new address, so the address is asked for
   * separately, and later: a failover may end between the two answers, and an old address with the
   * new epoch would be taken for the primary until the next failover.
   */
  async #viewOf(client: Redis): Promise<SentinelView> {
    const { name, addresses } = this.#options;
    await readyWithin(openMs, client);
    const [reply, address, replicas] = (await Promise.all(
      ["MASTER", "GET-MASTER-ADDR-BY-NAME", "REPLICAS"].map((command) =>
        client.call("SENTINEL", command, name),
      ),
    )) as [string[], [string, string] | null, string[][]];
    if (address === null) throw new Error(`the Sentinels know no master ${name}`);
    const field = fieldsOf(reply);
    return {
      primary: address.join(":"),
      epoch: Number(field("config-epoch")),
      sentinels: Math.max(addresses.length, Number(field("num-other-sentinels") ?? 0) + 1),
      failingOver: (field("flags") ?? "").includes("failover_in_progress"),
      replicas: replicas.map(replicaOf),
    };
  }

  #adopt(views: readonly SentinelView[]): void {
    const isOtherwise = ({ primary, epoch }: SentinelView) =>
      epoch < this.#epoch || (epoch === this.#epoch && primary !== this.#primary);
    const otherwise = views.filter(isOtherwise);
    const nowMs = performance.now();
    if (otherwise.length <= this.#clients.length / 2) this.#agreedMs = nowMs;
    const areAnew = nowMs - this.#agreedMs > anewMs;
    const supporters = (view: SentinelView) =>
      views.filter(({ primary, epoch }) => primary === view.primary && epoch === view.epoch).length;
    const [newest] = (areAnew ? otherwise : views).toSorted(
      (one, other) => other.epoch - one.epoch || supporters(other) - supporters(one),
    );
    if (!newest || (!areAnew && newest.epoch <= this.#epoch)) return;
    const moved = this.#primary !== undefined && this.#primary !== newest.primary;
    this.#epoch = newest.epoch;
    this.#primary = newest.primary;
    this.#agreedMs = nowMs;
    if (moved) this.#options.onPrimary?.(newest.primary);
  }
}

/** Longest wait for a connection to close, in milliseconds: its peer may be frozen. */
export const disconnectMs = 200;

/** The options of all connections, to Sentinels and to servers: see `keepConnected`. */
export const connectionOptions = {
  connectTimeout: 1_000,
  disconnectTimeout: disconnectMs,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  noDelay: true,
  keepAlive: 10_000,
  // Closes a connection that died silently; longer than any answer may take.
  socketTimeout: 2_500,
} satisfies RedisOptions;

/** Splits `host:port`; the host may be an IPv6 address. */
export function hostAndPort(address: ServerAddress): { host: string; port: number } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
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
