import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { AbstractConnector, type RedisOptions } from "ioredis";
import type { ClientTlsOptions } from "../net/client-tls.ts";
import { addressOf, type Link } from "./link.ts";
import { disconnectMs, hostAndPort, NoPrimary, type Sentinels } from "./sentinels.ts";

export interface ConnectorOptions {
  /** Hears of each connection. */
  readonly link: Link;
  /** Set for connections by TLS; the driver's own options have to say so too. */
  readonly tls: ClientTlsOptions | undefined;
  /** They name the server. Default: the driver's own options do. */
  readonly sentinels?: Sentinels | undefined;
  /** The servers of which each connection goes to any. Default: to that of the driver's own options. */
  readonly anyOf?: readonly Place[];
}

type Place = Pick<RedisOptions, "host" | "port" | "family">;

/**
 * What opens a driver's connections. The driver's own connector to a Sentinel set asks the Sentinels
 * one after the other, gives up when a failover is announced meanwhile, and leaves the errors of its
 * connections to standard error.
 */
export function connectorTo({
  link,
  tls,
  sentinels,
  anyOf = [],
}: ConnectorOptions): NonNullable<RedisOptions["Connector"]> {
  return class extends AbstractConnector {
    readonly #given: Place;
    #ended: Socket | undefined;

    constructor(given: unknown) {
      super(disconnectMs);
      this.#given = given as RedisOptions;
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      const { host = "", port = 0, family } = await this.#place();
      if (!this.connecting) throw new Error("Connection is closed.");
      const place = { host, port, ...(family !== undefined && { family }) };
      const stream = tls ? connectTls({ ...place, ...tls }) : connect(place);
      this.stream = stream;
      link.follow(stream, `${host}:${port}`, () => this.#ended === stream);
      joinWrites(stream);
      // The driver may not listen for errors yet.
      stream.once("error", (error) => {
        this.firstError = error;
      });
      return stream;
    }

    override check({ role }: { role?: string }): boolean {
      if (sentinels === undefined) return true;
      // A failover may have ended while the connection was opened: the old primary may not know it.
      if (!sentinels.isPrimary(addressOf(this.stream as Socket))) return false;
      return role === undefined || role === "master";
    }

    override disconnect(): void {
      this.connecting = false;
      // Once for a connection, however many commands it refused: the driver adds a listener each time.
      if (this.stream && this.stream === this.#ended) return;
      this.#ended = this.stream as Socket | undefined;
      super.disconnect();
    }

    async #place(): Promise<Place> {
      if (!sentinels) return anyOf[Math.floor(Math.random() * anyOf.length)] ?? this.#given;
      try {
        return hostAndPort(await sentinels.primary());
      } catch (error) {
        if (error instanceof NoPrimary) link.hasNoPrimary(error.areAway);
        throw error;
      }
    }
  };
}

/**
 * Sends all commands of one turn of the event loop in one piece: a socket write for each command
 * would cost the process, and the server, more than the command itself. No command waits for longer
 * than the turn lasts, and their order stays.
 */
function joinWrites(stream: Socket): void {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  const send = () => stream.uncork();
  stream.write = (...args: unknown[]) => {
    if (stream.writableCorked === 0) {
      stream.cork();
      setImmediate(send);
    }
    return write(...args);
  };
}
