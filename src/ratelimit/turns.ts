import { hash } from "node:crypto";
import type { TurnTaker } from "./bucket.ts";

/** The calls of one caller that wait here, first come, first served. */
export class CallerLine<T> {
  /** The caller as Redis may know it. */
  readonly key: string;
  readonly calls = new Set<T>();
  /** So many more wait at other replicas, and at how many of these. */
  elsewhere: readonly [calls: number, replicas: number] = [0, 0];
  /** As they came, those that left among them: a set walks over all that left to find its first. */
  #order: T[] = [];
  #head = 0;

  constructor(key: string) {
    this.key = key;
  }

  get first(): T | undefined {
    while (this.#head < this.#order.length && !this.calls.has(this.#order[this.#head]!))
      this.#head++;
    return this.#order[this.#head];
  }

  get total(): number {
    return this.calls.size + this.elsewhere[0];
  }

  add(call: T): void {
    if (this.#order.length > 2 * this.calls.size + 64) {
      this.#order = [...this.calls];
      this.#head = 0;
    }
    this.calls.add(call);
    this.#order.push(call);
  }
}

/** Callers that take one turn among them. */
class Group<T> {
  /** Those that wait here stand in the order of their turns. */
  readonly lines = new Map<string, CallerLine<T>>();
  size = 0;
  total = 0;
}

/**
 * Callers in turns: deficit round-robin in which every call costs one token and every turn brings
 * one, so that no deficit is left to carry over. A service takes a turn of its own; all customers
 * together take one, which goes round among them. Who leaves gives its turn up, and who is new is
 * last.
 */
export class Turns<T> {
  readonly #groups = new Map<string, Group<T>>();
  /** How many calls wait here. */
  size = 0;
  /** How many wait, here and at other replicas. */
  total = 0;

  /** The call whose turn it is. */
  get first(): T | undefined {
    for (const group of this.#groups.values()) {
      if (group.size === 0) continue;
      for (const { first } of group.lines.values()) if (first) return first;
    }
    return undefined;
  }

  /** Callers that wait here: first those whose turn it is in each group, then all others. */
  get lines(): CallerLine<T>[] {
    const groups = [...this.#groups.values()].map(({ lines }) =>
      [...lines.values()].filter(({ calls }) => calls.size > 0),
    );
    return [...groups.flatMap(([first]) => first ?? []), ...groups.flatMap(([, ...rest]) => rest)];
  }

  /** How many calls of this caller wait here. */
  sizeOf(key: string): number {
    return this.#groups.get(groupOf(key))?.lines.get(key)?.calls.size ?? 0;
  }

  add(key: string, call: T): void {
    const { group, line } = this.#enter(key);
    line.add(call);
    this.#count(group, 1, 1);
  }

  /** Whose call was `served` has had its turn. */
  remove(key: string, call: T, { served }: { readonly served: boolean }): void {
    const group = this.#groups.get(groupOf(key));
    const line = group?.lines.get(key);
    if (!group || !line?.calls.delete(call)) return;
    this.#count(group, -1, -1);
    this.#drop(group, line);
    if (!served) return;
    if (group.lines.delete(key)) group.lines.set(key, line);
    if (this.#groups.delete(groupOf(key))) this.#groups.set(groupOf(key), group);
  }

  /** Sets what waits at other replicas, by caller. */
  setElsewhere(elsewhere: Readonly<Record<string, CallerLine<T>["elsewhere"]>>): void {
    for (const group of this.#groups.values()) {
      for (const line of group.lines.values()) {
        this.#count(group, 0, -line.elsewhere[0]);
        line.elsewhere = [0, 0];
        this.#drop(group, line);
      }
    }
    for (const [key, others] of Object.entries(elsewhere)) {
      const { group, line } = this.#enter(key);
      line.elsewhere = others;
      this.#count(group, 0, others[0]);
    }
  }

  /** Tokens that go to others, and to `own` calls of this caller, before its next call gets one. */
  ahead(key: string, own: number): number {
    const group = this.#groups.get(groupOf(key));
    const line = group?.lines.get(key);
    const [calls, replicas] = line?.elsewhere ?? [0, 0];
    // With each turn of this one, others have one too.
    let ahead = own + Math.min(calls, (own + 1) * replicas);
    ahead += inTurns(group?.lines ?? new Map(), line, ahead + 1);
    return ahead + inTurns(this.#groups, group, ahead + 1);
  }

  #enter(key: string): { group: Group<T>; line: CallerLine<T> } {
    const group = this.#groups.get(groupOf(key)) ?? new Group<T>();
    this.#groups.set(groupOf(key), group);
    const line = group.lines.get(key) ?? new CallerLine<T>(key);
    group.lines.set(key, line);
    return { group, line };
  }

  /** Forgets a caller of whom nothing waits. */
  #drop(group: Group<T>, line: CallerLine<T>): void {
    if (line.total === 0) group.lines.delete(line.key);
    if (group.total === 0) this.#groups.delete(groupOf(line.key));
  }

  #count(group: Group<T>, here: number, all: number): void {
    for (const counted of [this, group]) {
      counted.size += here;
      counted.total += all;
    }
  }
}

/** Tokens that all but `self` get in so many turns; of very many rather too many than one by one. */
function inTurns<Of extends { readonly total: number }>(
  all: ReadonlyMap<string, Of>,
  self: Of | undefined,
  turns: number,
): number {
  if (all.size > 100) return turns * all.size;
  let tokens = 0;
  for (const other of all.values()) if (other !== self) tokens += Math.min(other.total, turns);
  return tokens;
}

/** A caller as Redis may know it: `c:` for a customer or `s:` for a service, and a digest of its name. */
export function keyOf(caller: TurnTaker | undefined): string {
  if (!caller) return "s:";
  const kind = caller.customer === undefined ? "s" : "c";
  return `${kind}:${hash("sha256", caller.name, "base64url").slice(0, 16)}`;
}

/** All customers are of one group, each service is one of its own; take-tokens.lua does the same. */
function groupOf(key: string): string {
  return key.startsWith("c:") ? "c:" : key;
}
