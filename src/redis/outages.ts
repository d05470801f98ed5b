import { repeat } from "../net/timer.ts";
import { ask } from "./ask.ts";
import type { RedisClient } from "./connect.ts";

export interface OutagesOptions {
  readonly client: RedisClient;
  /**
   * A key of each merchant account, which nothing is kept under: in a cluster some may be out of reach
   * and others not.
   */
  readonly keys: ReadonlyMap<string, string>;
  /** Fails if what Redis has of an account cannot be used: then it counts as away. Default: it can. */
  readonly check?: (account: string) => Promise<unknown>;
  /** Called when an outage of some accounts begins, and once a minute while it lasts. */
  readonly onAway: (reason: unknown, awayMs: number, accounts: readonly string[]) => void;
  readonly onBack: (awayMs: number) => void;
}

const everyMs = 1_000;
const againMs = 60_000;

/**
 * Asks Redis once a second to overwrite a key of each account that is not there, which changes nothing:
 * a replica, and a server that is full or cannot save, refuse that. Reports when it begins to fail
 * and when it succeeds again: once per outage, however often connections break meanwhile, and once a
 * minute while it lasts.
 */
export function watchOutages({ client, keys, check, onAway, onBack }: OutagesOptions) {
  let awaySinceMs: number | undefined;
  let saidAtMs = 0;

  async function look() {
    const startedMs = Date.now();
    const away = new Map<string, unknown>();
    const asked = [...keys].map(async ([account, key]) => {
      const written = ask(client, () => client.set(key, "", "XX"));
      await Promise.all([written, check?.(account)]).catch((reason) => away.set(account, reason));
    });
    await Promise.all(asked);
    return { startedMs, away };
  }

  const { close } = repeat(look, ({ startedMs, away }) => {
    const [reason] = away.values();
    if (away.size > 0 && (awaySinceMs === undefined || startedMs >= saidAtMs + againMs)) {
      saidAtMs = startedMs;
      awaySinceMs ??= startedMs;
      onAway(reason, startedMs - awaySinceMs, [...away.keys()]);
    } else if (away.size === 0 && awaySinceMs !== undefined) {
      onBack(Date.now() - awaySinceMs);
      awaySinceMs = undefined;
    }
    return everyMs;
  });
  return {
    /** Start of the present outage, in milliseconds since the epoch; undefined while there is none. */
    get awaySinceMs() {
      return awaySinceMs;
    },
    close,
  };
}
