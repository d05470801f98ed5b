import { connect, type Socket } from "node:net";
import { AbstractConnector, Redis, type RedisOptions } from "ioredis";
import { RedisTimeout, within } from "./deadline.ts";
import { keepConnected } from "./keep-connected.ts";

/** Where a Redis server is, as the Sentinels write it: `host:port`. */
export type ServerAddress = string;

/** What one Sentinel says of the set. */
export interface SentinelView {
  readonly primary: ServerAddress;
  /** Grows with each failover: of two Sentinels that differ, the greater one is right. */
  readonly epoch: number;
  /** How many Sentinels it knows of, itself among them. */
  readonly sentinels: number;
  /** It leads a failover that is not over. */
  readonly failingOver: boolean;
  readonly replicas: readonly SentinelReplica[];
}

export interface SentinelReplica {
  readonly address: ServerAddress;
  /** It does not answer this Sentinel. */
  readonly down: boolean;
  /** Never promoted if 0; else the least is promoted first. */
  readonly priority: number;
  /** How much it held when it was asked last: of equal priority the greatest is promoted. */
  readonly offset: number;
}

export interface SentinelsOptions {
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** The set's name. */
  readonly name: string;
  /** The newest word of the Sentinels is another primary than before. */
  readonly onPrimary?: (primary: ServerAddress) => void;
}

/** How long a Sentinel may take to answer, in milliseconds. */
const answerMs = 500;
/** How long those are waited for that are slower than most. */
const stragglersMs = 30;
/** How often the Sentinels are asked who the primary is. */
const lookMs = 500;
const reconnectMs = (tries: number) => Math.min(50 * 2 ** Math.min(tries, 6), 2_000);

/**
 * The Sentinels of a set, each asked over a connection that is kept open. One that is frozen or gone
 * holds nobody up for longer than its time: all are asked at once.
 */
export class Sentinels {
  /** How many are named in the configuration. */
  readonly size: number;
  readonly #options: SentinelsOptions;
  readonly #clients: readonly Redis[];
  #primary: ServerAddress | undefined;
  #epoch = -1;
  #looking: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: SentinelsOptions) {
    this.#options = options;
    this.size = options.addresses.length;
    this.#clients = options.addresses.map((address) => {
      const client = new Redis({ ...sentinelOptions, ...address });
      // What one of them fails by matters only where all do: see `primary`.
      client.on("error", (error) => void failures.set(client, error));
      keepConnected(client, reconnectMs);
      return client;
    });
    this.#lookSoon();
  }

  /**
   * The address of the primary: that of the answer with the greatest epoch.
   * @throws Error when no Sentinel answers.
   */
  async primary(): Promise<ServerAddress> {
    const name = this.#options.name;
    const asked = this.#ask(async (client) => {
      // The first connections may be opening still.
      await opened(client);
      return await primaryOf(client, name);
    });
    const answers = await this.#answersOf(asked, 0);
    if (answers.length === 0) throw unreachable(await Promise.allSettled(asked));
    this.#adopt(answers);
    return this.#primary ?? "";
  }

  /** What those say that answer in time, each of its own. */
  async views(): Promise<SentinelView[]> {
    const name = this.#options.name;
    const asked = this.#ask(async (client) => {
      const [reply, replicas] = await Promise.all([
        primaryOf(client, name),
        client.call("SENTINEL", "REPLICAS", name) as Promise<string[][]>,
      ]);
      return { ...reply, replicas: replicas.map(replicaOf) };
    });
    const answers = await this.#answersOf(asked, stragglersMs);
    this.#adopt(answers);
    return answers;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#looking);
    for (const client of this.#clients) client.disconnect();
  }

  #ask<T>(question: (client: Redis) => Promise<T>): Promise<T>[] {
    return this.#clients.map((client) => within(answerMs, question(client)));
  }

  /** What came until most have answered, and so long after; or until none can come any more. */
  #answersOf<T>(asked: readonly Promise<T>[], afterMajorityMs: number): Promise<T[]> {
    const majority = Math.floor(this.size / 2) + 1;
    const answers: T[] = [];
    let left = asked.length;
    return new Promise((resolve) => {
      const settle = () => {
        left -= 1;
        if (left === 0 || (answers.length >= majority && afterMajorityMs === 0)) resolve(answers);
        else if (answers.length === majority) setTimeout(() => resolve(answers), afterMajorityMs);
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
    for (const { primary, epoch } of views) {
      if (epoch < this.#epoch || (epoch === this.#epoch && this.#primary !== undefined)) continue;
      const moved = this.#primary !== undefined && this.#primary !== primary;
      this.#epoch = epoch;
      this.#primary = primary;
      if (moved) this.#options.onPrimary?.(primary);
    }
  }

  #lookSoon(): void {
    if (this.#closed) return;
    this.#looking = setTimeout(() => {
      this.primary()
        .catch(() => {})
        .then(() => this.#lookSoon());
    }, lookMs).unref();
  }
}

/**
 * The driver's way to a set's primary. Its own one asks the Sentinels one after the other, gives up
 * when a failover is announced meanwhile, and leaves the errors of its connections to standard error.
 */
export function connectorTo(sentinels: Sentinels): NonNullable<RedisOptions["Connector"]> {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectMs);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      const address = await sentinels.primary();
      if (!this.connecting) throw new Error("Connection is closed.");
      this.stream = connect(hostAndPort(address));
      addresses.set(this.stream, address);
      // The driver may not be listening yet.
      this.stream.once("error", (error) => {
        this.firstError = error;
      });
      return this.stream as Socket;
    }

    override check({ role }: { role?: string }): boolean {
      return role === undefined || role === "master";
    }
  };
}

const addresses = new WeakMap<object, ServerAddress>();

/** Where a connection leads, by the Sentinels' name for it; undefined if they did not name it. */
export function addressOf(stream: object | undefined): ServerAddress | undefined {
  return stream && addresses.get(stream);
}

/** A connection that is closed is not waited for longer, in milliseconds: its peer may be frozen. */
export const disconnectMs = 200;

const sentinelOptions = {
  protocol: 2,
  connectTimeout: 1_000,
  disconnectTimeout: disconnectMs,
  enableReadyCheck: false,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  noDelay: true,
  keepAlive: 10_000,
  socketTimeout: 2_500,
  retryStrategy: reconnectMs,
} satisfies RedisOptions;

/** Splits `host:port`; the host may be an IPv6 address. */
export function hostAndPort(address: ServerAddress): { host: string; port: number } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
}

/** What each connection failed by last. */
const failures = new WeakMap<Redis, Error>();
const openings = new WeakMap<Redis, Promise<void>>();

/** What the present try to open a connection comes to; one listener for all that wait. */
function opened(client: Redis): Promise<void> {
  if (client.status === "ready") return Promise.resolve();
  const known = openings.get(client);
  if (known) return known;
  const opening = new Promise<void>((resolve, reject) => {
    const settle = () => {
      openings.delete(client);
      for (const event of ["ready", "close"]) client.off(event, settle);
      if (client.status === "ready") resolve();
      else reject(failures.get(client) ?? new Error("the connection was closed"));
    };
    for (const event of ["ready", "close"]) client.on(event, settle);
  });
  openings.set(client, opening);
  return opening;
}

/** Says whether they were silent: a Sentinel that is silent may have others to talk to. */
function unreachable(asked: readonly PromiseSettledResult<unknown>[]): Error {
  const reasons = asked.map((answer) => (answer as PromiseRejectedResult).reason as Error);
  const silent = reasons.some((reason) => reason instanceof RedisTimeout);
  const reason = silent ? "timed out" : reasons.map(({ message }) => message).at(-1);
  return new Error(`All sentinels are unreachable: ${reason}`);
}

/** SENTINEL MASTER has the new epoch before the new address: the address is asked for by itself. */
async function primaryOf(client: Redis, name: string): Promise<Omit<SentinelView, "replicas">> {
  const [address, reply] = (await Promise.all([
    client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name),
    client.call("SENTINEL", "MASTER", name),
  ])) as [[string, string] | null, string[]];
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

/** Names and values in turn. */
function fieldsOf(reply: readonly string[]): (name: string) => string | undefined {
  const fields = new Map<string, string>();
  for (let at = 0; at + 1 < reply.length; at += 2) fields.set(reply[at] ?? "", reply[at + 1] ?? "");
  return (name) => fields.get(name);
}
