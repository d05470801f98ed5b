import { type Begun, type Ending, type Intent, type KeyUse, keyRetentionMs } from "../store.ts";

/** What is stored of a key that was used. */
export interface UsedKey {
  readonly fingerprint: string;
  readonly intentId: string;
  readonly leaseUntilMs: number;
  readonly sinceMs: number;
  outcome: "running" | "unknown" | Buffer;
}

/** Uses of `Idempotency-Key`s, in this process's memory. */
export class MemoryKeys {
  /** By account and digest, the oldest first. */
  readonly #used = new Map<string, UsedKey>();

  /** What became of the key's first call; undefined for a key that is free. */
  find(account: string, use: KeyUse, now: number): Begun | undefined {
    const { digest, otherDigests = [], fingerprints } = use;
    if (otherDigests.some((other) => this.#used.has(id(account, other)))) {
      return { kind: "keyReused" };
    }
    const used = this.#used.get(id(account, digest));
    if (!used) return undefined;
    if (!fingerprints.includes(used.fingerprint)) return { kind: "keyReused" };
    if (used.outcome === "running") {
      return { kind: used.leaseUntilMs > now ? "keyRunning" : "keyUnknown" };
    }
    if (used.outcome === "unknown") return { kind: "keyUnknown" };
    return { kind: "keyAnswered", answer: used.outcome };
  }

  take(account: string, { digest, fingerprints }: KeyUse, intent: Intent): void {
    this.#used.set(id(account, digest), {
      fingerprint: fingerprints[0] ?? "",
      intentId: intent.id,
      leaseUntilMs: intent.leaseUntilMs,
      sinceMs: intent.startedAtMs,
      outcome: "running",
    });
  }

  end(account: string, digest: string, intentId: string, ending: Ending): void {
    const used = this.#used.get(id(account, digest));
    if (used?.intentId !== intentId) return;
    if (ending.state === "unknown") {
      // An answer that came in between stands.
      if (used.outcome === "running") used.outcome = "unknown";
    } else if (ending.key === "free") this.#used.delete(id(account, digest));
    else if (ending.key !== "keep") used.outcome = ending.key;
  }

  used(account: string, digest: string): UsedKey | undefined {
    return this.#used.get(id(account, digest));
  }

  /** Restores a stored key. Keys must be restored in the order of their age, the oldest first. */
  restore(account: string, digest: string, used: UsedKey): void {
    this.#used.set(id(account, digest), used);
  }

  /** Removes the keys that are older than `keyRetentionMs`. */
  sweep(now: number): void {
    for (const [key, { sinceMs }] of this.#used) {
      if (sinceMs > now - keyRetentionMs) break;
      this.#used.delete(key);
    }
  }
}

function id(account: string, digest: string): string {
  return JSON.stringify([account, digest]);
}
