import assert from "node:assert/strict";
import { type Event, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { Appended, Entry, Topic } from "../../../src/ledger/log.ts";
import type { Kind } from "../../../src/model/kinds.ts";
import { payment, snapshotOf, type Told } from "../../ledger/entries.ts";

/** A new, empty log, and what the suite does to it from outside. */
export interface EventLogHarness {
  readonly log: Ledger;
  /** The same store as another process opens it; the log itself if only one process can. */
  readonly peer: Ledger;
  /** Makes all events stored so far older than the retention. */
  expire(account: string): Promise<void>;
  /** Frees what the logs use, after they were closed. */
  stop(): Promise<void>;
}

/** How many dead letters, and how much of them, the harness's logs have room for. */
export const lettersBound = { letters: 50, bytes: 40_000 };

export const account = "shop";
export const everything: Topic = { kinds: [] };
export const order1: Topic = { kind: EventKind.PAYMENT, externalId: "order-1" };

/** The log of the test that runs, and what the parts of the suite do with it. */
export class LogRig {
  log!: Ledger;
  peer!: Ledger;
  /** Aborted at the end of the test. */
  ends!: AbortController;
  #harness!: EventLogHarness;

  async begin(create: () => Promise<EventLogHarness>): Promise<void> {
    this.#harness = await create();
    ({ log: this.log, peer: this.peer } = this.#harness);
    this.ends = new AbortController();
  }

  async end(): Promise<void> {
    this.ends.abort();
    await this.log.close();
    await this.peer.close();
    await this.#harness.stop();
  }

  expire(of: string): Promise<void> {
    return this.#harness.expire(of);
  }

  readonly read = (topic: Topic, after: string, { by = this.log } = {}) =>
    by.read(account, topic, after, { signal: this.ends.signal });
  readonly append = async (entry: Entry, by = this.log): Promise<Appended> =>
    by.append(account, entry);
  readonly stored = async (entry: Entry, by = this.log): Promise<Event> => {
    const { outcome, event } = await this.append(entry, by);
    assert.equal(outcome, "stored");
    assert(event);
    return event;
  };
  /** Stores many payments, twenty at a time, and returns their events in order. */
  readonly storeMany = async (
    count: number,
    from = 0,
    toldOf: (name: string) => Told = (name) => ({ externalId: name, paymentId: name }),
  ): Promise<Event[]> => {
    const entries = Array.from({ length: count }, (_, i) => payment(toldOf(`many-${from + i}`)));
    const events: Event[] = [];
    while (entries.length > 0) {
      events.push(...(await Promise.all(entries.splice(0, 20).map((entry) => this.stored(entry)))));
    }
    return events.sort((a, b) => (a.cursor < b.cursor ? -1 : 1));
  };
  readonly snapshotOf = (externalId = "order-1", kind: Kind = EventKind.PAYMENT) =>
    snapshotOf(this.log, account, kind, externalId);
}
