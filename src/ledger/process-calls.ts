import { ByAge } from "../collections/by-age.ts";
import type { Kind } from "../model/kinds.ts";
import { adoptCall, beginCall, callOf, endCall, intentsOf } from "./calls.ts";
import { Change, Draft } from "./change.ts";
import {
  type Ages,
  type Begun,
  type Ending,
  type Intent,
  markOfEnding,
  type NewIntent,
  type OpenCall,
} from "./intents.ts";
import type { Entry } from "./log.ts";
import { type PaymentRecord, recordKey } from "./record.ts";

/**
 * The calls of this process in its memory, decided by the functions that decide on the store's
 * records.
 */
export class ProcessCalls {
  readonly #ages: Ages;
  /** Records by account and record key, by when they were last changed. */
  readonly #records = new ByAge<PaymentRecord>();

  constructor(ages: Ages) {
    this.#ages = ages;
  }

  begin(account: string, given: NewIntent): Begun {
    const key = recordKey(given.kind, given.externalId);
    const kind = this.#step(account, key, (change, draft) =>
      beginCall(change, draft, undefined, given),
    );
    if (kind !== "started") return { kind } as Begun;
    const open = this.open(account, given.kind, given.externalId);
    const intent = open.find(({ id }) => id === given.id);
    if (!intent) throw new Error("the call was not recorded");
    return { kind: "started", intent };
  }

  adopt(account: string, intent: Intent): void {
    this.#step(account, recordKey(intent.kind, intent.externalId), (change, draft) =>
      adoptCall(change, draft, callOf(intent)),
    );
  }

  end(account: string, intent: Intent, ending: Ending, told?: Entry): void {
    const key = recordKey(intent.kind, intent.externalId);
    this.#step(account, key, (change, draft) => {
      endOwnCall(change, draft, intent, ending, told);
    });
  }

  open(account: string, kind: Kind, externalId: string): Intent[] {
    const key = recordKey(kind, externalId);
    const record = this.#records.get(`${account} ${key}`);
    return record ? intentsOf(key, record) : [];
  }

  /** Marks (evidence.ts) of attempts that calls account for whose ending the store may lack. */
  marks(account: string, kind: Kind, externalId: string): readonly string[] {
    return this.#records.get(`${account} ${recordKey(kind, externalId)}`)?.marks ?? [];
  }

  /** Forgets a call, and all that is kept of its external_id unless another call is open. */
  forget(account: string, { kind, externalId, id }: Intent): void {
    const name = `${account} ${recordKey(kind, externalId)}`;
    const record = this.#records.get(name);
    if (!record) return;
    record.calls = record.calls.filter((call) => call.id !== id);
    if (record.calls.length === 0) this.#records.delete(name);
  }

  #step<T>(account: string, key: string, decide: (change: Change, draft: Draft) => T) {
    const name = `${account} ${key}`;
    const draft = new Draft(key, this.#records.get(name));
    const nowMs = Date.now();
    const result = decide(new OwnChange(token, nowMs, [draft], this.#ages), draft);
    if (draft.value) this.#records.set(name, draft.value as PaymentRecord);
    else this.#records.delete(name);
    const sinceMs = nowMs - this.#ages.giveUpMs;
    this.#records.fromOldest((oldest, { calls }) => {
      // Those of other replicas tell nobody here that they have settled a call.
      const isOver = ({ state, startedAt }: OpenCall) =>
        state !== "running" && Number(startedAt) <= sinceMs;
      const isTooMany = this.#records.size > maxRecords || calls.length > 0;
      return isTooMany && calls.every(isOver) && this.#records.delete(oldest);
    });
    return result;
  }
}

/**
 * Ends a call of this process. It is kept while its outcome is unknown, since its lock is needed when
 * the store goes away, and while the store does not have its answer: nothing else says then that it
 * made anything.
 */
export function endOwnCall(
  change: Change,
  draft: Draft,
  intent: Intent,
  ending: Ending,
  told?: Entry,
): void {
  const mark = markOfEnding(ending);
  const kept: Ending = told
    ? { state: "pending", subjectId: told.subjectId, key: "keep", ...(mark && { mark }) }
    : ending;
  endCall(change, draft, undefined, intent, kept);
  if (kept.state === "unknown" || told) return;
  const record = draft.value as PaymentRecord;
  record.calls = record.calls.filter(({ id }) => id !== intent.id);
}

/** A change in this process, whose clock is the one that counts. */
class OwnChange extends Change {
  override get now(): string {
    return `${this.nowMs}`;
  }
}

/** Marks places of events, which are not stored here. */
const token = "process";

/** Beyond this number, the oldest external_ids without an open call lose their marks. */
const maxRecords = 100_000;
