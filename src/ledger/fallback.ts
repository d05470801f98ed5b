import { setTimeout as delay } from "node:timers/promises";
import { UnderWay } from "../collections/under-way.ts";
import { GatewayError, StoreUnavailable } from "../errors.ts";
import type { Kind } from "../model/kinds.ts";
import { within } from "../net/timer.ts";
import { activeSpan } from "../telemetry/tracing/tracing.ts";
import { intentOfCall, newCall } from "./calls.ts";
import type { About, Begun, Ending, Intent, Known, NewIntent } from "./intents.ts";
import { Ledger, type LedgerOptions } from "./ledger.ts";
import type { Appended, Entry } from "./log.ts";
import { Outbox } from "./outbox.ts";
import { adoptOwn, beginOwn, endOwn, nameOf, ProcessCalls } from "./process-calls.ts";
import { UnreadableRecord } from "./record.ts";

export interface FallbackOptions extends LedgerOptions {
  /** Whether a call without a key may go on without the account's store after this error. */
  readonly isAway: (error: unknown, account: string) => boolean;
  /** The error for callers, of an error of the store. Default: UNAVAILABLE, which logs its message. */
  readonly unavailable?: (error: unknown) => unknown;
  /**
   * The store can be read while it takes no writes: a call that goes on without it is still barred
   * by the open calls in it. Default: it cannot.
   */
  readonly readsGoOn?: boolean;
  /**
   * Called when calls that move money notice that an account's store is away (`alone`) or back
   * (`shared`).
   */
  readonly onStateChange?: (account: string, state: "shared" | "alone", cause?: unknown) => void;
  /** Longest that the store may take to answer, in milliseconds. */
  readonly answerMs: number;
}

/**
 * A ledger whose store may be away. Meanwhile calls without an `Idempotency-Key` go on:
 * they, and the locks between them, are kept in this process by the same functions, and are adopted
 * by the store as soon as it is back. While the store is merely silent no call goes on: it may hold
 * the lock of a call that is open at another replica.
 */
export class LedgerWithFallback extends Ledger {
  readonly #options: FallbackOptions;
  /** Calls that this process began and whose outcome it does not know. */
  readonly #own: ProcessCalls;
  /** Names of the external_ids for which calls are being begun, one for each. */
  readonly #beginning = new UnderWay<string>();
  /** Steps that the store does not have yet, by account: one node of a cluster may be away alone. */
  readonly #outboxes = new Map<string, Outbox>();
  /**
   * Ids of calls that ended here and whose ending the store does not have yet: this process must not
   * look them up as lost.
   */
  readonly #unwritten = new Set<string>();

  constructor(options: FallbackOptions) {
    super(options);
    this.#options = options;
    this.#own = new ProcessCalls(options);
  }

  protected override onSettled(account: string, settled: Intent): void {
    // Once the store is away, nothing else would show that its lock has fallen.
    this.#own.forget(account, settled);
  }

  override async begin(account: string, given: NewIntent): Promise<Begun> {
    const member = this.#beginning.add(nameOf(account, given));
    try {
      return await this.#begin(account, given);
    } finally {
      member.leave();
    }
  }

  async #begin(account: string, given: NewIntent): Promise<Begun> {
    let asked = false;
    try {
      const begun = await this.#whileBroken(async () => {
        const outbox = this.#outboxOf(account);
        // A call must not overtake a lock that is not written yet.
        if (outbox.isBehind) await this.#within(outbox.flush(), this.#options.answerMs);
        asked = true;
        return await this.#within(super.begin(account, given));
      });
      if (begun.kind === "started") {
        const call = newCall(given, begun.intent.startedAtMs);
        this.#own.change(account, given, (own) => adoptOwn(own, call));
      }
      return begun;
    } catch (error) {
      const goesOn = !given.key && this.#options.isAway(error, account);
      const begun = goesOn && (await this.#beginAlone(account, given, error));
      if (begun) return begun;
      // The store may have taken key and lock even so.
      if (asked && !(error instanceof UnreadableRecord)) {
        this.#unwritten.add(given.id);
        const intent = intentOfCall(given, newCall(given, this.nowMs(account)));
        const free = this.#write(account, intent, { state: "closed", key: "free" });
        this.#outboxOf(account).add(free, error);
      }
      throw error;
    }
  }

  /** Retries on a broken connection: only the next connection shows whether the store is away. */
  async #whileBroken<T>(ask: () => Promise<T>): Promise<T> {
    const endsMs = performance.now() + this.#options.answerMs;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const mayBeBack = error instanceof StoreUnavailable && error.broken && !error.away;
        if (!mayBeBack || performance.now() > endsMs) throw error;
        await delay(10);
      }
    }
  }

  /** Never throws: what cannot be written now is reported, and written later, while this process lives. */
  override async end(
    account: string,
    intent: Intent,
    ending: Ending,
    told?: Entry,
  ): Promise<Appended | undefined> {
    this.#own.change(account, intent, (own) => endOwn(own, intent.id, ending, told));
    this.#unwritten.add(intent.id);
    const write = this.#write(account, intent, ending, told);
    return write().catch((error: unknown) => {
      const { externalId } = intent;
      this.#outboxOf(account).add(write, error);
      this.#options.report?.("unrecorded", { account, externalId, error });
      return undefined;
    });
  }

  override async known(account: string, kind: Kind, externalId: string): Promise<Known> {
    const about = { kind, externalId };
    const before = this.#notStored(account, about);
    const known = await this.#within(super.known(account, kind, externalId));
    const stored = known.calls.filter((call) => !this.isEnding(call));
    // One that was settled while the store was read may still be open in what was read.
    const now = this.#notStored(account, about);
    const own = new Map([...before, ...now].map((call) => [call.id, call]));
    for (const { id } of stored) own.delete(id);
    // The store may lack some of this process, and this process has forgotten most of the store's.
    const marks = [...known.marks, ...this.#own.of(account, about).marks];
    return { ...known, calls: [...stored, ...own.values()], marks };
  }

  /**
   * Own calls that the store may not have: running here and lost with a server that failed, begun
   * while the store was away, or ended and not written yet.
   */
  #notStored(account: string, about: About): Intent[] {
    const own = this.#own.of(account, about).calls.map((call) => intentOfCall(about, call));
    return own.filter((call) => call.state === "running" || this.isEnding(call));
  }

  protected override isEnding({ id }: Intent): boolean {
    return this.#unwritten.has(id);
  }

  override async giveUp(account: string, intent: Intent): Promise<void> {
    await super.giveUp(account, intent);
    this.#own.forget(account, intent);
  }

  /** Tries once more to write what could not be written. */
  override async close(): Promise<void> {
    await Promise.all([...this.#outboxes.values()].map((outbox) => outbox.close()));
    await super.close();
  }

  /** @returns undefined if the call must not go on */
  async #beginAlone(account: string, given: NewIntent, cause: unknown): Promise<Begun | undefined> {
    let stored: readonly Intent[] = [];
    if (this.#options.readsGoOn) {
      // Only this process has the store: should it end before the disk takes writes again, nothing
      // would say that the payment is a hold.
      if (given.hold) return undefined;
      const known = await this.known(account, given.kind, given.externalId).catch(() => undefined);
      if (!known) return undefined;
      // The store may have taken this one even so.
      stored = known.calls.filter(({ id }) => id !== given.id);
    }
    // The store may yet take the other one's lock.
    const name = nameOf(account, given);
    if ([...this.#beginning].filter((one) => one === name).length > 1) return undefined;
    const call = this.#own.change(account, given, (own) =>
      beginOwn(own, given, Date.now(), this.#options, stored),
    );
    if (!call) return { kind: "inFlight" };
    const intent = { ...intentOfCall(given, call), given };
    // Our clock may differ from the store's, so the store gets the elapsed time.
    const at = performance.now();
    const adopt = untilMade(() => this.adopt(account, given, performance.now() - at));
    this.#outboxOf(account).add(() => this.#within(adopt()), cause);
    return { kind: "started", intent };
  }

  #outboxOf(account: string): Outbox {
    let outbox = this.#outboxes.get(account);
    if (!outbox) {
      const { onStateChange } = this.#options;
      outbox = new Outbox((state, cause) => onStateChange?.(account, state, cause));
      this.#outboxes.set(account, outbox);
    }
    return outbox;
  }

  /** Once it was made, it returns the same. */
  #write(account: string, intent: Intent, ending: Ending, told?: Entry) {
    const end = () => super.end(account, intent, ending, told);
    // Each try belongs to the call, whoever has it made.
    const span = activeSpan.getStore();
    const write = untilMade(span ? () => activeSpan.run(span, end) : end);
    return async (): Promise<Appended | undefined> => {
      try {
        const appended = await this.#within(write());
        this.#unwritten.delete(intent.id);
        if (ending.state !== "unknown") this.#own.forget(account, intent);
        return appended;
      } catch (error) {
        // It is not tried again: who can read the record looks the call up.
        if (error instanceof UnreadableRecord) this.#unwritten.delete(intent.id);
        throw error;
      }
    };
  }

  #within<T>(asked: Promise<T>, limitMs = this.#options.answerMs + replicasMs): Promise<T> {
    const { unavailable = asUnavailable } = this.#options;
    return within(limitMs, asked).catch((error: unknown) => {
      throw unavailable(error);
    });
  }
}

const asUnavailable = (error: unknown) =>
  error instanceof GatewayError ? error : new StoreUnavailable(error);

/** How long replicas may take beyond `answerMs` before a write counts as not answered. */
const replicasMs = 1_000;

/**
 * A write that was not answered in time may still wait for its turn: a second try waits for that one,
 * or the tries for one record would become more and more.
 */
function untilMade<T>(write: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= write().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
