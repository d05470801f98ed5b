import { oncePer } from "../collections/once-per.ts";
import { type Member, UnderWay } from "../collections/under-way.ts";
import { intakeLimits } from "./intake-limits.ts";

/**
 * The memory that clients make the process hold: bodies on their way in and answers on their way
 * out, of all listeners together. One client must not be able to fill it, nor all together exceed
 * it.
 */
export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

/** One body's share of the budget. */
export interface BufferedBytes {
  /**
   * Counts the bytes that the body takes now. If that exceeds the budget, something is dropped,
   * perhaps this body.
   */
  hold(bytes: number): void;
  /** Releases the body's bytes. */
  close(): void;
}

/** What has to be dropped sooner the more it weighs. */
interface Droppable {
  readonly weight: () => number;
  readonly drop: (weight: number) => void;
}

/** An answer, or a socket, whose client may leave bytes unread. */
export interface UnreadAnswer {
  readonly bytes: () => number;
  readonly cut: () => void;
}

/**
 * Beyond the budget, the greatest is dropped first until an eighth is free, so that it happens
 * rarely. A body counts by its bytes times its age: those of honest clients are small and arrive at
 * once. Unread answers are looked at twice a second and count by their bytes: their clients have
 * had time to read them.
 * @param maxBytes bytes of all clients together
 */
export function createMemoryBudget(maxBytes: number = intakeLimits.bufferedBytes) {
  const maxOfConnection = Math.max(maxBytes * intakeLimits.shareOfConnection, 1);
  const bodies = new UnderWay<Droppable & { readonly connection: object }>();
  /** Bytes of the bodies of each connection. */
  const ofConnection = oncePer((_: object) => ({ bytes: 0 }));
  const watched = new UnderWay<UnreadAnswer>();
  let inward = 0;
  /** Unread bytes when they were last counted. */
  let outward = 0;
  let sweep: NodeJS.Timeout | undefined;

  const isRoomy = (share = 7 / 8) => inward + outward <= maxBytes * share;

  function makeRoom(): void {
    // What was unread may have been read since it was counted.
    if (outward > 0) countUnread();
    if (isRoomy(1)) return;
    // The larger side is the cause.
    if (outward > inward) cutUnread();
    dropGreatest([...bodies], isRoomy);
  }

  function makeRoomOf(connection: object, of: { bytes: number }): void {
    const own = [...bodies].filter((one) => one.connection === connection);
    dropGreatest(own, () => of.bytes <= maxOfConnection * (7 / 8));
  }

  function countUnread(): void {
    outward = 0;
    watched.forEach(({ bytes }) => {
      outward += bytes();
    });
  }

  function cutUnread(): void {
    const cutOf = (cut: () => void) => (bytes: number) => {
      outward -= bytes;
      cut();
    };
    dropGreatest(
      [...watched].map(({ bytes, cut }) => ({ weight: bytes, drop: cutOf(cut) })),
      isRoomy,
    );
  }

  function look(): void {
    countUnread();
    if (!isRoomy(1)) makeRoom();
    if (watched.size > 0) return;
    clearInterval(sweep);
    sweep = undefined;
  }

  return {
    /**
     * Registers a body of a connection.
     * @param onDrop called once if it is dropped to free memory; it then counts no more
     */
    open(connection: object, onDrop: () => void): BufferedBytes {
      const of = ofConnection(connection);
      const startedMs = performance.now();
      let own = 0;
      const count = (bytes: number) => {
        of.bytes += bytes - own;
        inward += bytes - own;
        own = bytes;
      };
      const close = () => {
        count(0);
        member.leave();
      };
      const member = bodies.add({
        connection,
        weight: () => own * (performance.now() - startedMs + 1),
        drop() {
          close();
          onDrop();
        },
      });
      return {
        hold(bytes) {
          if (member.hasLeft) return;
          count(bytes);
          if (of.bytes > maxOfConnection) makeRoomOf(connection, of);
          if (inward + outward > maxBytes) makeRoom();
        },
        close,
      };
    },
    /** Counts the unread bytes of an answer or a socket until it leaves. */
    watch(unread: UnreadAnswer): Member<UnreadAnswer> {
      sweep ??= setInterval(look, sweepIntervalMs).unref();
      return watched.add(unread);
    },
    /** Memory of all bodies now, in bytes. */
    get bytes(): number {
      return inward;
    },
  };
}

/** Drops one after another, what weighs most first, until it is enough. */
function dropGreatest(all: readonly Droppable[], isEnough: () => boolean): void {
  const weighed = all.map(({ weight, drop }) => ({ weight: weight(), drop }));
  weighed.sort((a, b) => b.weight - a.weight);
  for (const { weight, drop } of weighed) {
    if (isEnough() || weight === 0) return;
    drop(weight);
  }
}

const sweepIntervalMs = 500;
