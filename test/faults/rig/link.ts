import net from "node:net";
import { listen } from "../../listen.ts";

/** Those whose connections a link carries, recognized by the first bytes sent. */
export const clients = ["gateway-0", "gateway-1", "gateway-2"] as const;
export const others = ["peer", "sentinel", "other"] as const;
export type Party = (typeof clients)[number] | (typeof others)[number];

export type LinkMode =
  | "open"
  /** Connections are reset, and new ones refused. */
  | "cut"
  /** Bytes are held back, and pass afterwards. */
  | "stalled"
  /** Bytes are lost for good without an error; new connections get no answer. */
  | "half-open";

export type Link = Awaited<ReturnType<typeof startLink>>;

interface Pair {
  party: Party | undefined;
  readonly sockets: readonly [near: net.Socket, far: net.Socket];
  /** All bytes are lost from now on. */
  dead: boolean;
}

/**
 * A TCP proxy before one port, with a mode for each party.
 * @param target returns the server's port, called for each connection: it may be known only later
 */
export async function startLink(target: () => number) {
  const modes = new Map<Party, LinkMode>();
  const pairs = new Set<Pair>();
  const modeOf = (party: Party | undefined) => (party && modes.get(party)) ?? "open";

  function apply(pair: Pair): void {
    const [near, far] = pair.sockets;
    switch (modeOf(pair.party)) {
      case "cut":
        near.resetAndDestroy();
        far.resetAndDestroy();
        break;
      case "stalled":
        near.pause();
        far.pause();
        break;
      case "half-open":
        pair.dead = true;
        near.resume();
        far.resume();
        break;
      default:
        near.resume();
        far.resume();
    }
  }

  const server = net.createServer({ allowHalfOpen: true }, (near) => {
    const far = net.connect({ port: target(), host: "127.0.0.1", allowHalfOpen: true });
    const pair: Pair = { party: undefined, sockets: [near, far], dead: false };
    pairs.add(pair);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on("data", (chunk) => {
        if (from === near && pair.party === undefined) {
          pair.party = partyOf(chunk);
          apply(pair);
        }
        if (pair.dead || to.destroyed) return;
        if (modeOf(pair.party) === "stalled") from.unshift(chunk);
        else to.write(chunk);
      });
      from.on("end", () => pair.dead || to.end());
      from.on("error", () => {});
      from.on("close", () => {
        if (!pair.dead) to.destroy();
        if (near.destroyed && far.destroyed) pairs.delete(pair);
      });
    }
  });
  return {
    port: await listen(server),
    set(mode: LinkMode, parties: readonly Party[] = [...clients, ...others]) {
      for (const party of parties) modes.set(party, mode);
      for (const pair of pairs) if (pair.party && parties.includes(pair.party)) apply(pair);
    },
    async close() {
      server.close();
      for (const { sockets } of pairs) for (const socket of sockets) socket.destroy();
    },
  };
}

/** Gateways send their user name, replicas begin with PING, Sentinels send their client name. */
function partyOf(first: Buffer): Party {
  const text = first.subarray(0, 400).toString("latin1");
  const gateway = /gateway-[0-2]/.exec(text)?.[0];
  if (gateway) return gateway as Party;
  if (/^\*1\r\n\$4\r\nPING/i.test(text)) return "peer";
  return text.includes("sentinel-") ? "sentinel" : "other";
}
