import { ByAge } from "../collections/by-age.ts";
import { addMark, isLocked, markOfEnding, newCall } from "./calls.ts";
import type { About, Ages, Ending, Intent, NewIntent, OpenCall } from "./intents.ts";
import type { Entry } from "./log.ts";
import { type PaymentRecord, recordKey } from "./record.ts";

/** What a process keeps of an external_id: its open calls, and marks of those that have ended. */
export type OwnCalls = Pick<PaymentRecord, "calls" | "marks">;

/** The calls of this process in its memory, with their locks: for while the store lacks them. */
export class ProcessCalls {
  readonly #ages: Ages;
  /** By account and record key, by when they were last changed. */
  readonly #all = new ByAge<OwnCalls>();

  constructor(ages: Ages) {
    this.#ages = ages;
  }

  of(account: string, about: About): OwnCalls {
    return this.#all.get(nameOf(account, about)) ?? none;
  }

  /** Forgets a call, and all that is kept of its external_id unless another call is open. */
  forget(account: string, intent: Intent): void {
    const name = nameOf(account, intent);
    const own = this.#all.get(name);
    if (!own) return;
    own.calls = own.calls.filter((call) => call.id !== intent.id);
    if (own.calls.length === 0) this.#all.delete(name);
  }

  change<T>(account: string, about: About, change: (own: OwnCalls) => T): T {
    const name = nameOf(account, about);
    const own = this.#all.get(name) ?? { ...none };
    const result = change(own);
    this.#all.set(name, own);
    const sinceMs = Date.now() - this.#ages.giveUpMs;
    this.#all.fromOldest((oldest, { calls }) => {
      // Those of other replicas tell nobody here that they have settled a call.
      const isOver = ({ state, startedAt }: OpenCall) =>
        state !== "running" && Number(startedAt) <= sinceMs;
      const isTooMany = this.#all.size > maxRecords || calls.length > 0;
      return isTooMany && calls.every(isOver) && this.#all.delete(oldest);
    });
    return result;
  }
}

/** Names an external_id of an account. */
export function nameOf(account: string, { kind, externalId }: About): string {
  return `${account} ${recordKey(kind, externalId)}`;
}

/**
 * @param others calls that bar this one, too, and are not kept: they may have ended by now
 * @returns undefined while another call of the method has the lock
 */
export function beginOwn(
  own: OwnCalls,
  given: NewIntent,
  nowMs: number,
  ages: Ages,
  others: readonly OpenCall[] = [],
): OpenCall | undefined {
  if (isLocked([...own.calls, ...others], given.method, nowMs, ages)) return undefined;
  const call = newCall(given, nowMs);
  adoptOwn(own, call);
  return call;
}

export function adoptOwn(own: OwnCalls, call: OpenCall): void {
  if (!own.calls.some(({ id }) => id === call.id)) own.calls = [...own.calls, call];
}

/**
 * Ends a call of this process. It is kept while its outcome is unknown, since its lock is needed when
 * the store goes away, and while the store does not have its answer: nothing else says then that it
 * made anything.
 */
export function endOwn(own: OwnCalls, id: string, ending: Ending, told?: Entry): void {
  const mark = markOfEnding(ending);
  if (mark && !own.marks.includes(mark)) addMark(own, mark);
  const call = own.calls.find((one) => one.id === id);
  if (!call) return;
  if (told) Object.assign(call, { state: "pending", subjectId: told.subjectId });
  else if (ending.state !== "unknown") own.calls = own.calls.filter((one) => one !== call);
  else if (call.state === "running") call.state = "unknown";
}

const none: OwnCalls = { calls: [], marks: [] };

/** Beyond this number, the oldest external_ids without an open call lose their marks. */
const maxRecords = 100_000;
