import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { type Event, EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Entry, OperationState } from "../../src/ledger/log.ts";
import { createMemoryLedger } from "./create.ts";
import { cursors, payment, snapshotOf, take } from "./entries.ts";

/** Random histories, each in its own account, compared with a plain list. Any store would do. */
it("a log agrees with a list, whatever comes, in whatever order", async () => {
  const log = createMemoryLedger({ retentionMs: 7 * 86_400_000 });
  let accounts = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(entries, { maxLength: 40 }), fc.nat(), async (history, at) => {
      const run = new Run(log, `account-${++accounts}`);
      for (const entry of history) await run.append(entry);
      await run.checkStates();
      await run.checkReads(at);
    }),
    { numRuns: 300 },
  );
  await log.close();
});

const externalIds = ["order-1", "order-2"];

/** Few values per field, so that entries often have the same ones. */
const entries: fc.Arbitrary<Entry> = fc
  .record({
    externalId: fc.constantFrom(...externalIds),
    attempt: fc.constantFrom("a", "b"),
    operation: fc.constantFrom("payment" as const, "refund" as const),
    operationId: fc.constantFrom("", "op-1", "op-2"),
    status: fc.constantFrom(
      "init" as const,
      "pending" as const,
      "success" as const,
      "failure" as const,
    ),
    statusCode: fc.constantFrom("", "waiting_for_redirect"),
    source: fc.constantFrom("callback" as const, "response" as const, "reconciliation" as const),
  })
  .map(({ attempt, ...told }) => payment({ ...told, paymentId: `${told.externalId}-${attempt}` }));

interface Kept {
  readonly entry: Entry;
  readonly event: Event;
}

class Run {
  readonly #log: Ledger;
  readonly #account: string;
  readonly #kept: Kept[] = [];

  constructor(log: Ledger, account: string) {
    this.#log = log;
    this.#account = account;
  }

  async append(entry: Entry): Promise<void> {
    const held = standing(this.#kept.filter(sameOperation(entry)))?.entry;
    const apart = held?.operationId && entry.operationId && held.operationId !== entry.operationId;
    const callback = entry.source === EventSource.CALLBACK;
    const known = this.#kept.some(
      (kept) =>
        (!callback || kept.entry.source === EventSource.CALLBACK) &&
        (kept.entry.identity === entry.identity ||
          (callback && kept.entry.digest === entry.digest)),
    );
    const late = held !== undefined && entry.rank < held.rank && !apart;
    const duplicate = known || (late && !callback);
    const conflict = held?.rank === 2 && entry.rank === 2 && held.status !== entry.status && !apart;

    const appended = await this.#log.append(this.#account, entry);
    assert.equal(appended.outcome, duplicate ? "duplicate" : "stored");
    assert.equal(appended.conflict, !duplicate && conflict);
    if (appended.event) this.#kept.push({ entry, event: appended.event });
  }

  async checkStates(): Promise<void> {
    for (const externalId of externalIds) {
      const snapshot = await snapshotOf(this.#log, this.#account, EventKind.PAYMENT, externalId);
      const mine = this.#kept.filter(({ entry }) => entry.externalId === externalId);
      const expected = new Map<string, { since: string; set: Kept }>();
      for (const { entry } of mine) {
        const ofIt = mine.filter(sameOperation(entry));
        const set = standing(ofIt);
        assert(set && ofIt[0]);
        const apart = entry.operation === "refund" ? entry.operationId : "";
        expected.set(JSON.stringify([entry.subjectId, entry.operation, apart]), {
          since: ofIt[0].event.cursor,
          set,
        });
      }
      const ordered = [...expected.values()].sort((a, b) => (a.since < b.since ? -1 : 1));
      assert.deepEqual(
        (snapshot?.operations ?? []).map(facts),
        ordered.map(({ since, set: { entry, event } }) =>
          facts({ ...entry, event, place: event.cursor, since }),
        ),
      );
      assert.equal(snapshot?.cursor, mine.at(-1)?.event.cursor);
      const history = await this.#log.history(this.#account, EventKind.PAYMENT, externalId, 5);
      assert.deepEqual(cursors(history), cursors(mine.map(({ event }) => event).slice(-5)));
    }
  }

  async checkReads(at: number): Promise<void> {
    const all = this.#kept.map(({ event }) => event);
    assert.deepEqual(cursors(all), cursors(all).sort());
    const from = all.length === 0 ? 0 : at % all.length;
    const start = all[from - 1]?.cursor ?? "earliest";
    const ends = new AbortController();
    try {
      const { signal } = ends;
      const rest = await this.#log.read(this.#account, { kinds: [] }, start, { signal });
      assert.deepEqual(cursors(await take(rest, all.length - from)), cursors(all.slice(from)));
      for (const externalId of externalIds) {
        const topic = { kind: EventKind.PAYMENT, externalId };
        const mine = all.slice(from).filter((event) => event.externalId === externalId);
        const read = await this.#log.read(this.#account, topic, start, { signal });
        assert.deepEqual(cursors(await take(read, mine.length)), cursors(mine));
      }
    } finally {
      ends.abort();
    }
  }
}

function sameOperation({ externalId, subjectId, operation, operationId }: Entry) {
  return ({ entry }: Kept) =>
    entry.externalId === externalId &&
    entry.subjectId === subjectId &&
    entry.operation === operation &&
    // Refunds of one payment are distinguished by operation_id.
    (operation !== "refund" || entry.operationId === operationId);
}

/** The last success, else the last of the highest rank. */
function standing(kept: readonly Kept[]): Kept | undefined {
  const highest = Math.max(...kept.map(({ entry }) => entry.rank));
  return (
    kept.findLast(({ entry }) => entry.status === "success") ??
    kept.findLast(({ entry }) => entry.rank === highest)
  );
}

function facts(of: Omit<OperationState, "at">) {
  const { subjectId, operation, operationId, rank, status, since, place, event } = of;
  return { subjectId, operation, operationId, rank, status, since, place, cursor: event.cursor };
}
