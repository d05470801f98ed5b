import { ByAge } from "../collections/by-age.ts";
import type { Found, Version } from "../stores/kernel.ts";
import { absent, type Draft, type Supposed } from "./change.ts";

/**
 * Records as this process last saw or wrote them. A step is decided on them, and decided again if the
 * store has another version: so a wrong entry costs a round trip and nothing else.
 */
export class RecordCache {
  readonly #records = new ByAge<Supposed>();
  #characters = 0;

  get(key: string): Supposed {
    return this.#records.get(key) ?? absent;
  }

  /** The store has it like this. */
  found({ key, version, text, flags }: Found): void {
    const known = this.#records.get(key);
    const all = known?.version === version ? [...known.flags, ...flags] : flags;
    this.#set(key, { version, text, flags: new Map(all) });
  }

  /** This process wrote it. Flags that were set before are asked of the store again. */
  wrote({ key, was, flags }: Draft, version: Version, text: string): void {
    if (text === "") this.forget(key);
    else this.#set(key, { version, text, flags: flags.size > 0 ? flags : was.flags });
  }

  forget(key: string): void {
    const known = this.#records.get(key);
    if (!known) return;
    this.#records.delete(key);
    this.#characters -= sizeOf(known);
  }

  #set(key: string, record: Supposed): void {
    const known = this.#records.set(key, record);
    this.#characters += sizeOf(record) - (known ? sizeOf(known) : 0);
    if (this.#characters <= maxCharacters) return;
    this.#records.fromOldest((oldest) => {
      this.forget(oldest);
      return this.#characters > maxCharacters;
    });
  }
}

/** About 12 MiB for each account: some 15,000 records. */
const maxCharacters = 12 * 1024 * 1024;

function sizeOf({ text, flags }: Supposed): number {
  return text.length + flags.size * 64 + 200;
}
