import { ByAge } from "../collections/by-age.ts";
import { adoptCall, beginCall, callOf, endCall, intentsOf } from "./calls.ts";
import { Change, Draft } from "./change.ts";
import {
  type Ages,
  type Begun,
  type Ending,
  type Intent,
  type Known,
  markOfEnding,
  type NewIntent,
  type OpenCall,
} from "./intents.ts";
import type { Entry } from "./log.ts";
import { newRecord, type PaymentRecord, recordKey } from "./record.ts";

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
    const kind = this.#step(account, given, (change, draft) =>
      beginCall(change, draft, undefined, given),
    );
    const intent = this.of(account, given).intents.find(({ id }) => id === given.id);
    return (kind === "started" ? { kind, intent: { ...intent, given } } : { kind }) as Begun;
  }

  adopt(account: string, intent: Intent): void {
    this.#step(account, intent, (change, draft) => adoptCall(change, draft, callOf(intent)));
  }

  end(account: string, intent: Intent, ending: Ending, told?: Entry): void {
    this.#step(account, intent, (change, draft) => {
      endOwnCall(change, draft, intent, ending, told);
    });
  }

  /** The open calls, and marks (evidence.ts) of attempts that calls account for, if the store may lack these. */
  of(account: string, about: About): Pick<Known, "intents" | "marks"> {
    const record = this.#records.get(nameOf(account, about)) ?? newRecord();
    const key = recordKey(about.kind, about.externalId);
    return { intents: intentsOf(key, record), marks: record.marks };
  }

  /** Forgets a call, and all that is kept of its external_id unless another call is open. */
  forget(account: string, intent: Intent): void {
    const name = nameOf(account, intent);
    const record = this.#records.get(name);
    if (!record) return;
    record.calls = record.calls.filter((call) => call.id !== intent.id);
    if (record.calls.length === 0) this.#records.delete(name);
  }

  #step<T>(account: string, about: About, decide: (change: Change, draft: Draft) => T) {
    const name = nameOf(account, about);
    const draft = new Draft(recordKey(about.kind, about.externalId), this.#records.get(name));
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

type About = Pick<Intent, "kind" | "externalId">;

/** Names an external_id of an account. */
export function nameOf(account: string, { kind, externalId }: About): string {
  return `${account} ${recordKey(kind, externalId)}`;
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
