import { UnderWay } from "../collections/under-way.ts";
import { intakeLimits } from "./intake-limits.ts";

/**
 * The memory that clients make the process hold: bodies on their way in and answers on their way
 * out, of all listeners together. One client must not be able to fill it, nor all together exceed
 * it.
 */
export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

/** A body that is told once if it is dropped. */
export interface Droppable {
  drop(): void;
}

/** One body's share of the budget. */
export interface BufferedBytes {
  /** Counts further bytes. If that exceeds the budget, something is dropped, perhaps this body. */
  grow(bytes: number): void;
  /** Releases the body's bytes. */
  close(): void;
}

/** Writers whose clients may leave bytes unread. */
export interface Unread<Writer> {
  /** `forEach` visits thousands of them without a copy or an iterator. */
  readonly writers: Iterable<Writer> & { forEach(look: (writer: Writer) => void): void };
  readonly bytesOf: (writer: Writer) => number;
  readonly cut: (writer: Writer) => void;
}

/**
 * Beyond the budget, the greatest is dropped first until an eighth is free, so that it happens
 * rarely. A body counts by its bytes times its age: those of honest clients are small and arrive at
 * once. Unread answers are looked at twice a second and count by their bytes: their clients have
 * had time to read them.
 * @param maxBytes bytes of all clients together
 */
export function createMemoryBudget(
  maxBytes: number = intakeLimits.bufferedBytes,
  now = () => performance.now(),
) {
  const maxOfConnection = Math.max(maxBytes * intakeLimits.shareOfConnection, 1);
  const bodies = new UnderWay<Buffered>();
  /** Bytes of the bodies of each connection. */
  const connections = new WeakMap<object, { bytes: number }>();
  const watched = new Set<Unread<unknown>>();
  let inward = 0;
  /** Unread bytes when they were last counted. */
  let outward = 0;
  let sweep: NodeJS.Timeout | undefined;

  /** Drops bodies until `isEnough`, the greatest by bytes times age first. */
  function dropBodies(candidates: readonly Buffered[], isEnough: () => boolean): void {
    const at = now();
    const weighed = candidates.map((one) => ({ one, weight: one.weightAt(at) }));
    weighed.sort((a, b) => b.weight - a.weight);
    for (const { one } of weighed) {
      if (isEnough()) return;
      one.close();
      one.body.drop();
    }
  }

  const isRoomy = (share = 7 / 8) => inward + outward <= maxBytes * share;

  function makeRoom(): void {
    // What was unread may have been read since it was counted.
    if (outward > 0) countUnread();
    if (isRoomy(1)) return;
    // The larger side is the cause.
    if (outward > inward) cutUnread();
    dropBodies([...bodies], isRoomy);
  }

  function makeRoomOf(connection: object, of: { bytes: number }): void {
    const own = [...bodies].filter((one) => one.connection === connection);
    dropBodies(own, () => of.bytes <= maxOfConnection * (7 / 8));
  }

  function countUnread(): void {
    outward = 0;
    for (const { writers, bytesOf } of watched) {
      writers.forEach((writer) => {
        outward += bytesOf(writer);
      });
    }
  }

  function cutUnread(): void {
    const all = [...watched].flatMap(({ writers, bytesOf, cut }) =>
      [...writers].map((writer) => ({ bytes: bytesOf(writer), cut: () => cut(writer) })),
    );
    all.sort((a, b) => b.bytes - a.bytes);
    for (const { bytes, cut } of all) {
      if (isRoomy() || bytes === 0) return;
      outward -= bytes;
      cut();
    }
  }

  class Buffered implements BufferedBytes {
    readonly connection: object;
    readonly body: Droppable;
    readonly #of: { bytes: number };
    readonly #startedMs = now();
    readonly #member = bodies.add(this);
    #bytes = 0;

    constructor(connection: object, body: Droppable) {
      this.connection = connection;
      this.body = body;
      let of = connections.get(connection);
      if (!of) {
        of = { bytes: 0 };
        connections.set(connection, of);
      }
      this.#of = of;
    }

    weightAt(atMs: number): number {
      return this.#bytes * (atMs - this.#startedMs + 1);
    }

    grow(bytes: number): void {
      if (this.#member.hasLeft) return;
      this.#bytes += bytes;
      this.#of.bytes += bytes;
      inward += bytes;
      if (this.#of.bytes > maxOfConnection) makeRoomOf(this.connection, this.#of);
      if (inward + outward > maxBytes) makeRoom();
    }

    close(): void {
      if (this.#member.hasLeft) return;
      this.#member.leave();
      this.#of.bytes -= this.#bytes;
      inward -= this.#bytes;
    }
  }

  return {
    /** Registers a body of a connection. If it is dropped to free memory, it counts no more. */
    open: (connection: object, body: Droppable): BufferedBytes => new Buffered(connection, body),
    /** Counts the unread bytes of a set of writers, until the returned function is called. */
    watch<Writer>(unread: Unread<Writer>): () => void {
      const set = unread as Unread<unknown>;
      watched.add(set);
      sweep ??= setInterval(() => {
        countUnread();
        if (!isRoomy(1)) makeRoom();
      }, sweepIntervalMs).unref();
      return () => {
        watched.delete(set);
        if (watched.size > 0) return;
        clearInterval(sweep);
        sweep = undefined;
      };
    },
    /** Memory of all bodies now, in bytes. */
    get bytes(): number {
      return inward;
    },
  };
}

const sweepIntervalMs = 500;
