import { EventEmitter } from "node:events";
import type { Redis } from "ioredis";
import type { RedisClient, RedisConnector } from "../../../src/redis/connect.ts";
import { Link } from "../../../src/redis/link.ts";
import type { Sentinels } from "../../../src/redis/sentinels.ts";
import type { Lane, StoreNetwork } from "../network.ts";
import type { Process, Scheduler } from "../scheduler.ts";
import type { Answer, Command } from "./real-redis.ts";
import { type SimulatedServer, type Subscriber, sentinelCount } from "./redis-server.ts";

interface ClientOptions {
  readonly server: SimulatedServer;
  readonly network: StoreNetwork;
  readonly scheduler: Scheduler;
  readonly process: Process;
}

/** Connects like `connectRedis`, over the simulated network. */
export function connectorTo(options: ClientOptions, hasSentinels: boolean): RedisConnector {
  const open = () => new SimulatedClient(options).asClient();
  return {
    client: open(),
    dedicated: open,
    subscriber: open as () => Redis,
    info() {
      throw new Error("there is one server");
    },
    sentinels: hasSentinels ? (sentinelsOf(options) as Sentinels) : undefined,
    async close() {},
  };
}

/** Asks the Sentinels over the same network. */
function sentinelsOf({
  server,
  network,
  scheduler,
  process,
}: ClientOptions): Pick<Sentinels, "views"> {
  return {
    async views() {
      const all = Array.from({ length: sentinelCount }, (_, at) => at);
      const heard = all.filter(() => !network.troubleOf(process));
      await scheduler.wait(network.latencyMs() + network.stalledMs(process), process);
      const views = heard.map((sentinel) => server.view(sentinel));
      await scheduler.wait(network.latencyMs(), process);
      return views;
    },
  };
}

/** A connection that is silent for this long is closed, as with `connectRedis`, in milliseconds. */
const silentMs = 2_500;
const reconnectMs = 25;

/** Replaces the driver: commands, their answers, and the states and events of the connection. */
class SimulatedClient extends EventEmitter implements Subscriber {
  status = "connecting";
  /** The current connection; undefined while there is none. */
  stream: SimulatedStream | undefined;
  readonly #link = new Link();
  readonly #options: ClientOptions;
  readonly #pending = new Set<(error: Error) => void>();
  #lane: Lane = { thereMs: 0, backMs: 0 };
  #heardMs = 0;
  #stop: (() => void)[] = [];

  constructor(options: ClientOptions) {
    super();
    this.setMaxListeners(0);
    this.#options = options;
    const { server, network, process } = options;
    const gone = () => process.run(() => this.#break());
    this.#stop = [server.onGone(gone), network.onCut(gone)];
    // Ends the dead process's waits for `ready`: they may hold turns of pages, which all processes
    // share.
    process.onDeath(() => {
      this.disconnect();
      this.emit("ready");
    });
    this.#connectIn(0);
  }

  /** The client, with a method for each command. */
  asClient(): RedisClient {
    const methods = methodsOf((name, args) => this.#ask(name, args));
    const client = Object.assign(this, methods) as unknown as RedisClient;
    this.#link.of(client);
    return client;
  }

  callBuffer(name: string, ...args: unknown[]): Promise<unknown> {
    return this.#ask(name, args, true);
  }

  pipeline(): unknown {
    const all: Command[] = [];
    const exec = () => this.#send(all);
    const pipeline: object = {
      exec,
      ...methodsOf((name, args) => {
        all.push(commandOf(name, args));
        return pipeline;
      }),
    };
    return pipeline;
  }

  disconnect(): void {
    this.status = "end";
    this.#options.server.unsubscribe(this);
    for (const stop of this.#stop) stop();
    this.#failPending();
  }

  async #ask(name: string, args: readonly unknown[], bytes = false): Promise<unknown> {
    const [[error, result]] = (await this.#send([commandOf(name, args, bytes)])) as [Answer];
    if (error) throw error;
    return result;
  }

  /** Receives a published hint; it may be lost, and is not sent again. */
  hear(channel: string, message: string): void {
    const { network, scheduler, process } = this.#options;
    if (network.troubleOf(process)) return;
    const { stream } = this;
    const ms = network.latencyMs() + network.stalledMs(process);
    scheduler.after(
      ms,
      () => {
        if (stream === this.stream) this.emit("message", channel, message);
      },
      process,
    );
  }

  #send(all: readonly Command[]): Promise<Answer[]> {
    const { network, server, scheduler, process } = this.#options;
    if (this.status !== "ready") {
      const message = "Stream isn't writeable and enableOfflineQueue options is false";
      return Promise.reject(new Error(message));
    }
    return new Promise((resolve, reject) => {
      const { stream } = this;
      const sentMs = scheduler.nowMs;
      const stopWaiting = scheduler.after(
        silentMs,
        () => {
          if (!this.#pending.has(fail) || this.#heardMs > sentMs) return;
          this.#break();
        },
        process,
      );
      const fail = (error: Error) => {
        stopWaiting();
        reject(error);
      };
      this.#pending.add(fail);
      network.pass(nameOf(all), process, {
        once: !all.every(mayComeTwice),
        lane: this.#lane,
        obey: () => server.obey(all, this),
        answered: (answers) => {
          this.#heardMs = scheduler.nowMs;
          if (!this.#pending.delete(fail)) return;
          stopWaiting();
          resolve(answers);
        },
        cut: () => {
          if (stream === this.stream) this.#break();
        },
      });
    });
  }

  /** Breaks the connection: pending commands fail, and it connects again. */
  #break(): void {
    if (this.status !== "ready" && this.status !== "connect") return;
    const { stream } = this;
    this.stream = undefined;
    this.#options.server.unsubscribe(this);
    this.status = "close";
    this.#failPending();
    for (const event of ["end", "close"]) stream?.emit(event);
    this.emit("close");
    this.status = "reconnecting";
    this.#connectIn(reconnectMs);
  }

  #connectIn(ms: number): void {
    const { network, scheduler, process } = this.#options;
    const become = (status: string, inMs: number, then: () => void) => {
      const { stream } = this;
      scheduler.after(
        inMs,
        () => {
          if (this.status === "end" || this.stream !== stream) return;
          this.status = status;
          this.emit(status);
          then();
        },
        process,
      );
    };
    become("connecting", ms, () =>
      become("connect", network.latencyMs(), () => {
        const stream = new SimulatedStream();
        const { address } = this.#options.server;
        this.stream = stream;
        this.#link.follow(stream, address);
        stream.emit("connect");
        this.#lane = { thereMs: 0, backMs: 0 };
        become("ready", network.latencyMs() + network.stalledMs(process), () => {
          stream.bytesRead = 1;
        });
      }),
    );
  }

  #failPending(): void {
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const fail of pending) fail(new Error("Connection is closed."));
  }
}

class SimulatedStream extends EventEmitter {
  bytesRead = 0;
}

/** A method for each command that the stores use. */
function methodsOf(make: (name: string, args: readonly unknown[]) => unknown): object {
  const commands = [
    ...["eval", "evalsha", "wait", "role", "exists", "subscribe", "unsubscribe"],
    ...["hgetall", "hget", "hmget", "zrange", "zrem", "zcard", "zscore"],
    ...["zrangebyscore", "zrevrangebyscore"],
  ];
  return Object.fromEntries(
    commands.map((name) => [name, (...args: unknown[]) => make(name, args)]),
  );
}

function commandOf(name: string, args: readonly unknown[], bytes = false): Command {
  return { name, args: args as Command["args"], bytes };
}

/**
 * The driver sends no command twice, but the scripts of the intents and of the log promise to
 * tolerate that; the script of the bucket does not.
 */
function mayComeTwice({ name, args }: Command): boolean {
  if (name === "subscribe" || name === "unsubscribe") return false;
  return !args.some((arg) => String(arg).endsWith(":budget"));
}

/** For the diagram: each command with its first key. */
function nameOf(all: readonly Command[]): string {
  return all
    .map(({ name, args }) => {
      const key = args.find((arg) => String(arg).startsWith(`${prefix}:`));
      return `${name} ${String(key ?? "").replace(/^[^}]*}:/, "")}`;
    })
    .join(", ");
}

/** The prefix of all keys of a simulation. */
export const prefix = "gateway";
