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
  /** When the present outage began, by the clock that nobody sets. */
  let sinceMs: number | undefined;
  let saidAtMs = 0;

  async function look() {
    const atMs = performance.now();
    const away = new Map<string, unknown>();
    const probes = accounts.map((account) =>
      probe(account).catch((reason) => away.set(account, reason)),
    );
    await Promise.all(probes);
    return { atMs, away };
  }

  const { close } = repeat(look, ({ atMs, away }) => {
    const [reason] = away.values();
    if (away.size > 0 && (sinceMs === undefined || atMs >= saidAtMs + againMs)) {
      saidAtMs = atMs;
      sinceMs ??= atMs;
      onAway(reason, Math.round(atMs - sinceMs), [...away.keys()]);
    } else if (away.size === 0 && sinceMs !== undefined) {
      onBack(Math.round(performance.now() - sinceMs));
      sinceMs = undefined;
    }
    return everyMs;
  });
  return {
    /** Start of the present outage by the wall clock as it is now; undefined while there is none. */
    get awaySince() {
      return sinceMs === undefined ? undefined : new Date(Date.now() - performance.now() + sinceMs);
    },
    close,
  };
}
