import { hash } from "node:crypto";
import { ByAge } from "../collections/by-age.ts";
import type { TurnTaker } from "./bucket.ts";

/** The calls of one caller that wait in this process, first come, first served. */
export class CallerLine<T> {
  /** The caller's name in Redis: see `keyOf`. */
  readonly key: string;
  readonly calls = new ByAge<true, T>();
  /** How many more calls wait at other replicas, and at how many replicas. */
  elsewhere: readonly [calls: number, replicas: number] = [0, 0];

  constructor(key: string) {
    this.key = key;
  }

  get total(): number {
    return this.calls.size + this.elsewhere[0];
  }
}

/** Callers that share one turn: all customers, or one service. */
class Group<T> {
  /** Callers with calls in this process are in the order of their turns. */
  readonly lines = new Map<string, CallerLine<T>>();
  size = 0;
  total = 0;
}

/**
 * Deficit round-robin over callers: every call costs one token and every turn brings one, so that
 * no deficit is left to carry over. Each service takes a turn of its own; all customers together
 * take one, which goes round among them. A caller that leaves gives its turn up, and a new caller
 * comes last.
 */
export class Turns<T> {
  readonly #groups = new Map<string, Group<T>>();
  /** How many calls wait in this process. */
  size = 0;
  /** How many calls wait, here and at other replicas. */
  total = 0;

  /** The call whose turn it is. */
  get first(): T | undefined {
    for (const group of this.#groups.values()) {
      if (group.size === 0) continue;
      for (const { calls } of group.lines.values()) if (calls.oldest) return calls.oldest;
    }
    return undefined;
  }

  /** Callers with calls in this process: first the next one of each group, then all others. */
  get lines(): CallerLine<T>[] {
    const groups = [...this.#groups.values()].map(({ lines }) =>
      [...lines.values()].filter(({ calls }) => calls.size > 0),
    );
    return [...groups.flatMap(([first]) => first ?? []), ...groups.flatMap(([, ...rest]) => rest)];
  }

  /** The calls of this caller, if any wait here or at other replicas. */
  lineOf(key: string): CallerLine<T> | undefined {
    return this.#groups.get(groupOf(key))?.lines.get(key);
  }

  add(key: string, call: T): void {
    const { group, line } = this.#enter(key);
    line.calls.set(call, true);
    this.#count(group, 1, 1);
  }

  /** Removes a call; if it was `served`, its caller has had its turn and goes last. */
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

  /** Sets how many calls wait at other replicas, by caller. */
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
    // For each turn taken here, every other replica, caller and group takes one too.
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

  /** Forgets a caller without waiting calls. */
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

/** Tokens that all but `self` get in so many turns; an upper bound if there are more than 100. */
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

/** A caller's name in Redis: `c:` (customer) or `s:` (service), and a digest of its real name. */
export function keyOf(caller: TurnTaker | undefined): string {
  if (!caller) return "s:";
  const kind = caller.customer === undefined ? "s" : "c";
  const name = (kind === "s" && caller.service) || caller.name;
  return `${kind}:${hash("sha256", name, "base64url").slice(0, 16)}`;
}

/** All customers form one group, each service is its own; take-tokens.lua does the same. */
function groupOf(key: string): string {
  return key.startsWith("c:") ? "c:" : key;
}
