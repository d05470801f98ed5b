/** A world of few steps. Its states are rows of integers, of which the engine knows nothing. */
export interface Space {
  /** The state that is looked at. */
  readonly from: Int32Array;
  /** The state that a step leads to. */
  readonly to: Int32Array;
  /** Puts the first state into `to`. */
  start(): void;
  /**
   * Puts each state that one step leads to into `to`, and calls `emit` with the promise that the step
   * itself breaks; empty if none.
   */
  next(emit: (broken: string) => void): void;
  /** The promise that the state in `to` breaks; empty if none. */
  broken(): string;
  /** The promise that the state in `from`, which no step leads out of, breaks; empty if none. */
  brokenAtEnd(): string;
  /** The step that was emitted last, in plain words. */
  tell(): string;
}

export interface Found {
  readonly states: number;
  readonly steps: number;
  /** States in which nothing can happen any more. */
  readonly ends: number;
  /** All states were gone through. */
  readonly isWhole: boolean;
  /** A promise that is broken, and the shortest way there. */
  readonly broken?: { readonly promise: string; readonly story: readonly string[] };
}

/**
 * Goes through the states of a world, breadth first, until a promise is broken or `max` states are
 * known. States are compared whole, so that none is left out because of its hash.
 */
export function explore(space: Space, max: number): Found {
  const { from, to } = space;
  const width = to.length;
  // Memory that no state reaches is never touched.
  const words = new Int32Array((max + 1) * width);
  const parents = new Int32Array(max + 1);
  const table = new Int32Array(2 ** Math.ceil(Math.log2(3 * max)));
  let [count, steps, ends, isFull] = [0, 0, 0, false];

  /** The place of the state in `to`, unless others are there. */
  const slotOf = (): number => {
    let hash = 0x9e3779b9;
    for (let at = 0; at < width; at++) {
      hash = Math.imul(hash ^ to[at]!, 0x85ebca6b);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, 0xc2b2ae35);
    return (hash ^ (hash >>> 13)) & (table.length - 1);
  };
  /** Adds the state in `to`, unless it is known. */
  const isNew = (parent: number): boolean => {
    let slot = slotOf();
    for (let known = table[slot]!; known !== 0; known = table[slot]!) {
      let i = 0;
      for (let at = (known - 1) * width; i < width && words[at + i] === to[i]; ) i++;
      if (i === width) return false;
      slot = (slot + 1) & (table.length - 1);
    }
    if (count >= max) {
      isFull = true;
      return false;
    }
    const at = count * width;
    for (let i = 0; i < width; i++) words[at + i] = to[i]!;
    parents[count] = parent;
    table[slot] = ++count;
    return true;
  };
  const enter = (n: number) => {
    for (let i = 0, at = n * width; i < width; i++) from[i] = words[at + i]!;
  };
  const storyTo = (last: number): string[] => {
    const story: string[] = [];
    for (let n = last; n > 0; n = parents[n]!) {
      const wanted = words.subarray(n * width, (n + 1) * width);
      let told = "";
      enter(parents[n]!);
      space.next(() => {
        if (told === "" && wanted.every((word, i) => word === to[i])) told = space.tell();
      });
      story.unshift(told);
    }
    return story;
  };
  const found = (promise = "", story: readonly string[] = []): Found => ({
    ...{ states: count, steps, ends, isWhole: !isFull && promise === "" },
    ...(promise !== "" && { broken: { promise, story } }),
  });

  space.start();
  isNew(0);
  for (let n = 0; n < count; n++) {
    enter(n);
    const before = steps;
    let promise = "";
    let last = "";
    space.next((broken) => {
      steps++;
      if (promise !== "") return;
      promise = broken || (isNew(n) ? space.broken() : "");
      if (promise !== "") last = space.tell();
    });
    if (promise !== "") return found(promise, [...storyTo(n), last]);
    if (steps > before) continue;
    ends++;
    promise = space.brokenAtEnd();
    if (promise !== "") return found(promise, storyTo(n));
  }
  return found();
}
