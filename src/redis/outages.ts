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
  /** The present outage. Its length is not measured by the wall clock, which may be set meanwhile. */
  let outage: { readonly since: Date; readonly sinceMs: number } | undefined;
  let saidAtMs = 0;

  async function look() {
    const since = new Date();
    const sinceMs = performance.now();
    const away = new Map<string, unknown>();
    const probes = accounts.map((account) =>
      probe(account).catch((reason) => away.set(account, reason)),
    );
    await Promise.all(probes);
    return { since, sinceMs, away };
  }

  const { close } = repeat(look, ({ since, sinceMs, away }) => {
    const [reason] = away.values();
    if (away.size > 0 && (outage === undefined || sinceMs >= saidAtMs + againMs)) {
      saidAtMs = sinceMs;
      outage ??= { since, sinceMs };
      onAway(reason, Math.round(sinceMs - outage.sinceMs), [...away.keys()]);
    } else if (away.size === 0 && outage !== undefined) {
      onBack(Math.round(performance.now() - outage.sinceMs));
      outage = undefined;
    }
    return everyMs;
  });
  return {
    /** Start of the present outage; undefined while there is none. */
    get awaySince() {
      return outage?.since;
    },
    close,
  };
}
