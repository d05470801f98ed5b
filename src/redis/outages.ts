import { repeat } from "../net/timer.ts";
import { ask } from "./ask.ts";
import type { RedisClient } from "./connect.ts";

export interface OutagesOptions {
  readonly client: RedisClient;
  /**
   * A key of each merchant account: in a cluster some accounts may be out of reach and others not.
   */
  readonly keys: readonly string[];
  /** Called when an outage begins, and once a minute while it lasts. */
  readonly onAway: (reason: unknown, awayMs: number) => void;
  readonly onBack: (awayMs: number) => void;
}

const everyMs = 1_000;
const againMs = 60_000;

/**
 * Asks Redis once a second for a key of each account, and reports when that begins to fail and when
 * it succeeds again: once per outage, however often connections break meanwhile, and once a minute
 * while it lasts.
 */
export function watchOutages({ client, keys, onAway, onBack }: OutagesOptions) {
  let awaySinceMs: number | undefined;
  let saidAtMs = 0;

  async function look() {
    const startedMs = Date.now();
    const answers = await Promise.allSettled(
      keys.map((key) => ask(client, () => client.exists(key))),
    );
    return { startedMs, failure: answers.find((answer) => answer.status === "rejected") };
  }

  const { close } = repeat(look, ({ startedMs, failure }) => {
    if (failure && (awaySinceMs === undefined || startedMs >= saidAtMs + againMs)) {
      saidAtMs = startedMs;
      awaySinceMs ??= startedMs;
      onAway(failure.reason, startedMs - awaySinceMs);
    } else if (!failure && awaySinceMs !== undefined) {
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
