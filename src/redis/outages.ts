import { repeat } from "../net/timer.ts";

export interface OutagesOptions {
  /** In a cluster some merchant accounts may be out of reach and others not. */
  readonly accounts: readonly string[];
  /** Fails if Redis cannot be used for an account: then it counts as away. */
  readonly probe: (account: string) => Promise<void>;
  /** Called when an outage of some accounts begins, and once a minute while it lasts. */
  readonly onAway: (reason: unknown, awayMs: number, accounts: readonly string[]) => void;
  readonly onBack: (awayMs: number) => void;
}

const everyMs = 1_000;
const againMs = 60_000;

/**
 * Probes each account once a second. Reports when that begins to fail and when it succeeds again:
 * once per outage, however often connections break meanwhile, and once a minute while it lasts.
 */
export function watchOutages({ accounts, probe, onAway, onBack }: OutagesOptions) {
  let awaySinceMs: number | undefined;
  let saidAtMs = 0;

  async function look() {
    const startedMs = Date.now();
    const away = new Map<string, unknown>();
    const probes = accounts.map((account) =>
      probe(account).catch((reason) => away.set(account, reason)),
    );
    await Promise.all(probes);
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
    /** Start of the present outage; undefined while there is none. */
    get awaySince() {
      return awaySinceMs === undefined ? undefined : new Date(awaySinceMs);
    },
    close,
  };
}
