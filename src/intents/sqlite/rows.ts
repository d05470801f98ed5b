import type { Kind } from "../../model/kinds.ts";
import type { UsedKey } from "../memory/keys.ts";
import type { KeptIntent, KeptSubject } from "../memory/store.ts";

/** One row each of an intent, an external_id and a key. Saving one without `kept` deletes it. */
export type IntentRow = {
  readonly account: string;
  readonly id: string;
  readonly kept: KeptIntent | undefined;
};

export type SubjectRow = {
  readonly account: string;
  readonly kind: Kind;
  readonly externalId: string;
  readonly kept: KeptSubject | undefined;
};

export type KeyRow = {
  readonly account: string;
  readonly digest: string;
  readonly kept: UsedKey | undefined;
};

export interface Rows {
  readonly intents: readonly IntentRow[];
  readonly subjects: readonly SubjectRow[];
  readonly keys: readonly KeyRow[];
}

/** What is older than these times is deleted; in milliseconds since the epoch. */
export interface Ages {
  readonly intentsMs: number;
  readonly keysMs: number;
}
