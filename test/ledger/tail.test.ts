import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventKind, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import type { Page } from "../../src/ledger/account.ts";
import { type Follower, Hub } from "../../src/ledger/hub.ts";
import type { Topic } from "../../src/ledger/log.ts";
import { liveBuffer, readOn, type StoredLog } from "../../src/ledger/tail.ts";
import { createTurns } from "../../src/ledger/turns.ts";
import { type Bounds, cursorOf, placeOf } from "../../src/stores/cursor.ts";
import { cursors, take } from "./entries.ts";
import { hasCode } from "./refusals.ts";

const everything: Topic = undefined;
const epoch = "0123abcd";
const at = (ms: number) => cursorOf(placeOf(ms), epoch);

/** A log with a hook at every step of a read; its live part may lag behind or repeat events. */
class ScriptedLog implements StoredLog {
  readonly turns = createTurns();
  readonly hub = new Hub();
  readonly events: Event[] = [];
  floor = at(0);
  /** The `upTo` of the last page. */
  pagedTo = "";
  /** Called between the steps of a read. */
  hooks: {
    followed?: () => void;
    bounded?: () => void;
    beforePage?: () => void;
    paged?: () => void;
  } = {};

  append({ publish = true } = {}): Event {
    const event = create(EventSchema, {
      cursor: at(this.events.length + 1),
      kind: EventKind.PAYMENT,
      externalId: "order-1",
    });
    this.events.push(event);
    if (publish) this.hub.publish(event);
    return event;
  }

  async follow(topic: Topic, follower: Follower): Promise<() => void> {
    const detach = this.hub.follow(topic, follower);
    this.hooks.followed?.();
    return detach;
  }

  async bounds(): Promise<Bounds> {
    const bounds = this.#bounds();
    this.hooks.bounded?.();
    return bounds;
  }

  async page(_: Topic, after: string | undefined, limit: number): Promise<Page> {
    this.hooks.beforePage?.();
    const all = this.events.filter(({ cursor }) => cursor > (after ?? this.floor));
    const events = all.slice(0, limit);
    const bounds = this.#bounds();
    const upTo = events.length < all.length ? (events.at(-1)?.cursor ?? bounds.tail) : bounds.tail;
    this.pagedTo = upTo;
    this.hooks.paged?.();
    return { events, upTo, bounds };
  }

  #bounds(): Bounds {
    return { epoch, floor: this.floor, tail: this.events.at(-1)?.cursor ?? at(0) };
  }
}

describe("reading on", () => {
  const never = new AbortController();

  for (const hook of ["followed", "bounded", "beforePage", "paged"] as const) {
    for (const start of ["latest", "earliest", "cursor"] as const) {
      it(`has no gap and no repeat from ${start} when events arrive at the step ${hook}`, async () => {
        const log = new ScriptedLog();
        for (let i = 0; i < 300; i++) log.append();
        log.hooks[hook] = () => {
          if (log.events.length < 320) log.append();
        };
        const after = start === "cursor" ? at(10) : start;
        const events = await readOn(log, everything, after, never);
        const first = { earliest: 0, cursor: 10, latest: 300 }[start];
        const [one] = start === "latest" ? [log.append()] : [log.events[first]];
        const [seen] = await take(events, 1);
        if (start !== "latest") assert.equal(seen?.cursor, one?.cursor);
        while (log.events.length < 330) log.append();
        const from = log.events.findIndex(({ cursor }) => cursor === seen?.cursor);
        assert(from === first || (start === "latest" && from === first + 1 && hook === "followed"));
        const rest = await take(events, log.events.length - from - 1);
        assert.deepEqual(cursors(rest), cursors(log.events.slice(from + 1)));
      });
    }
  }

  it("pushes live events while its reader waits, and yields all others in order", async () => {
    const log = new ScriptedLog();
    const stored = [1, 2].map(() => log.append());
    const pushed: Event[] = [];
    let isFull = false;
    const push = (event: Event) => {
      if (!isFull) pushed.push(event);
      return !isFull;
    };
    const events = await readOn(log, everything, "earliest", {
      signal: never.signal,
      push,
    });
    assert.deepEqual(cursors(await take(events, 2)), cursors(stored));
    // No `next` is pending: the reader may still be handling the previous event.
    const [early] = [log.append()];
    assert.deepEqual(pushed, []);
    assert.deepEqual(cursors(await take(events, 1)), cursors([early]));

    const next = events.next();
    await new Promise(setImmediate);
    const live = [1, 2, 3].map(() => log.append());
    assert.deepEqual(cursors(pushed), cursors(live));
    log.hub.publish(live[1] as Event);
    assert.equal(pushed.length, 3, "what was handed on is not handed on again");

    isFull = true;
    const late = [1, 2].map(() => log.append());
    isFull = false;
    const last = log.append();
    assert.equal((await next).value?.cursor, late[0]?.cursor);
    assert.deepEqual(cursors(await take(events, 2)), cursors([...late.slice(1), last]));
    assert.equal(pushed.length, 3, "nothing goes past what waits");
    await events.return?.();
  });

  it("fails with the cursor of the last pushed event", async () => {
    const log = new ScriptedLog();
    const gone = new AbortController();
    const events = await readOn(log, everything, "latest", {
      signal: gone.signal,
      push: () => true,
    });
    const next = events.next();
    await new Promise(setImmediate);
    const event = log.append();
    gone.abort(new GatewayError("UNAVAILABLE", "the gateway is shutting down"));
    await assert.rejects(next, { details: { resumeCursor: event.cursor } });
    log.append();
  });

  describe("when the live delivery has lost its own place in the log", () => {
    const lost = () => new GatewayError("OUT_OF_RANGE", "gone", { reason: "CURSOR_EXPIRED" });

    for (const hook of ["followed", "paged"] as const) {
      it(`ends so that a reader with a good cursor resumes from it (${hook})`, async () => {
        const log = new ScriptedLog();
        log.append();
        log.append();
        log.hooks[hook] = () => {
          log.hooks = {};
          log.hub.fail(lost());
        };
        const seen: string[] = [];
        const reading = async () => {
          for await (const { cursor } of await readOn(log, everything, at(1), never)) {
            seen.push(cursor);
          }
        };
        await assert.rejects(reading(), ({ code, details }: GatewayError) => {
          assert.equal(code, "UNAVAILABLE");
          assert.equal(details.resumeCursor ?? at(1), seen.at(-1) ?? at(1));
          return true;
        });
      });
    }
  });

  it("misses nothing when the live buffer overflows again while it reads the store", async () => {
    const log = new ScriptedLog();
    const events = await readOn(log, everything, "latest", never);
    let bursts = 3;
    log.hooks.paged = () => {
      if (bursts-- > 0) for (let i = 0; i <= liveBuffer; i++) log.append();
    };
    for (let i = 0; i <= liveBuffer; i++) log.append();
    const seen = await take(events, (liveBuffer + 1) * 4);
    assert(bursts <= 0, "the control: every burst came while it read");
    assert.deepEqual(cursors(seen), cursors(log.events));
    const next = log.append();
    assert.deepEqual(cursors(await take(events, 1)), [next.cursor]);
  });

  it("misses nothing when the live buffer overflows while the last page is read", async () => {
    const log = new ScriptedLog();
    const events = await readOn(log, everything, "latest", never);
    for (let i = 0; i <= liveBuffer; i++) log.append();
    const before = log.events.length;
    const last = log.events.at(-1)?.cursor;
    // The page was made before this hook, so it lacks the events that the hook appends.
    log.hooks.paged = () => {
      if (log.pagedTo !== last || log.events.length > before) return;
      for (let i = 0; i <= liveBuffer; i++) log.append();
    };
    assert.deepEqual(cursors(await take(events, before)), cursors(log.events.slice(0, before)));
    assert.equal(log.events.length, before + liveBuffer + 1, "the control: the last page was read");
    log.append();
    const [first] = await take(events, 1);
    assert.equal(first?.cursor, log.events[before]?.cursor);
    const rest = log.events.slice(before + 1);
    assert.deepEqual(cursors(await take(events, rest.length)), cursors(rest));
  });

  it("cuts a reader with more than `liveBuffer` unread events at once, and says where to resume", async () => {
    for (const [unread, isCut] of [
      [liveBuffer, false],
      [liveBuffer + 1, true],
    ] as const) {
      const log = new ScriptedLog();
      const failures: Error[] = [];
      let start = "";
      const events = await readOn(log, everything, "latest", {
        signal: never.signal,
        onStart: (place) => {
          start = place;
        },
        onFail: (error) => failures.push(error),
      });
      assert.equal(start, at(0));
      // The reader is live once it waits for an event.
      const waiting = events.next();
      const seen = log.append();
      assert.equal((await waiting).value?.cursor, seen.cursor);
      for (let i = 0; i < unread; i++) log.append();
      assert.equal(log.hub.isEmpty, isCut);
      assert.deepEqual(failures.map(hasCode("RESOURCE_EXHAUSTED")), isCut ? [true] : []);
      if (isCut) {
        await assert.rejects(events.next(), ({ code, details }: GatewayError) => {
          assert.deepEqual([code, details.resumeCursor], ["RESOURCE_EXHAUSTED", seen.cursor]);
          return true;
        });
      } else {
        assert.equal((await take(events, unread)).length, unread);
        await events.return?.();
      }
      assert.equal(failures.length, isCut ? 1 : 0);
    }
  });

  it("throws OUT_OF_RANGE when the retention overtakes it, rather than skip events", async () => {
    const log = new ScriptedLog();
    for (let i = 0; i < 1_000; i++) log.append();
    const events = await readOn(log, everything, "earliest", never);
    await take(events, 10);
    log.floor = at(500);
    const rest = async () => {
      let last = "";
      for await (const { cursor } of events) {
        assert(last === "" || cursor > last);
        last = cursor;
      }
    };
    await assert.rejects(rest(), hasCode("OUT_OF_RANGE"));
    assert.ok(log.hub.isEmpty);
  });

  it("ends with the error that the log fails with", async () => {
    const log = new ScriptedLog();
    const events = await readOn(log, everything, "latest", never);
    const next = events.next();
    log.hub.fail(new GatewayError("UNAVAILABLE", "gone"));
    await assert.rejects(next, hasCode("UNAVAILABLE"));
    assert.deepEqual(await events.next(), { done: true, value: undefined });
  });

  describe("detaches from the log and from the signal", () => {
    async function opened(after = "latest") {
      const log = new ScriptedLog();
      log.append();
      const caller = new AbortController();
      const events = await readOn(log, everything, after, caller);
      const held = () => [
        Number(!log.hub.isEmpty),
        getEventListeners(caller.signal, "abort").length,
      ];
      assert.deepEqual(held(), [1, 1]);
      return { log, caller, events, held };
    }

    for (const [after, resumeCursor] of [
      ["latest", at(1)],
      ["earliest", at(0)],
    ] as const) {
      it(`when the signal aborts before the first next from ${after}, and says where to resume`, async () => {
        const { caller, events, held } = await opened(after);
        caller.abort();
        assert.deepEqual(held(), [0, 0]);
        await assert.rejects(events.next(), { code: "CANCELLED", details: { resumeCursor } });
      });
    }

    it("when the signal aborts while a `next` is pending", async () => {
      const { caller, events, held } = await opened();
      const next = events.next();
      caller.abort();
      await assert.rejects(next, hasCode("CANCELLED"));
      assert.deepEqual(held(), [0, 0]);
    });

    it("when the reader breaks out of its loop", async () => {
      const { log, events, held } = await opened();
      log.append();
      for await (const _ of events) break;
      assert.deepEqual(held(), [0, 0]);
    });

    it("when the reader returns before the first `next`", async () => {
      const { events, held } = await opened();
      await events.return?.();
      assert.deepEqual(held(), [0, 0]);
      assert.equal((await events.next()).done, true);
    });

    for (const step of ["followed", "bounded"] as const) {
      it(`when the signal aborts at the step ${step}`, async () => {
        const log = new ScriptedLog();
        const caller = new AbortController();
        log.hooks[step] = () => caller.abort();
        await assert.rejects(readOn(log, everything, "latest", caller), hasCode("CANCELLED"));
        assert.ok(log.hub.isEmpty);
        assert.equal(getEventListeners(caller.signal, "abort").length, 0);
      });
    }

    it("when the cursor is refused", async () => {
      const log = new ScriptedLog();
      const caller = new AbortController();
      await assert.rejects(readOn(log, everything, "", caller), hasCode("INVALID_ARGUMENT"));
      assert.equal(log.pagedTo, "", "the log is not asked for what is no cursor");
      await assert.rejects(readOn(log, everything, at(7), caller), hasCode("OUT_OF_RANGE"));
      assert.ok(log.hub.isEmpty);
      assert.equal(getEventListeners(caller.signal, "abort").length, 0);
    });
  });

  it("yields to the event loop after some events, however many readers there are", async () => {
    const log = new ScriptedLog();
    const made = Array.from({ length: 300 }, () => log.append());
    let [read, isOver, most] = [0, false, 0];
    const reader = async () => {
      const events = await readOn(log, everything, "earliest", never);
      const seen: Event[] = [];
      while (seen.length < made.length) {
        seen.push(...(await take(events, 1)));
        read++;
      }
      return cursors(seen);
    };
    const readers = Promise.all(Array.from({ length: 40 }, reader)).finally(() => {
      isOver = true;
    });
    readers.catch(() => {});
    while (!isOver) {
      const before = read;
      await new Promise(setImmediate);
      most = Math.max(most, read - before);
    }
    for (const seen of await readers) assert.deepEqual(seen, cursors(made));
    // Two turns of the readers may overlap the time between two measurements.
    assert.ok(most <= 2 * 32, `${most} events within one turn`);
  });
});
