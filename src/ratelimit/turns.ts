import { hash } from "node:crypto";
import { ByAge } from "../collections/by-age.ts";
import type { TurnTaker } from "./bucket.ts";

/** The calls of one caller that wait in this process, first come, first served. */
type Calls<T> = ByAge<true, T>;

/** Callers that share one turn: all customers, or one service. */
class Group<T> {
  /** By the caller's name in Redis (see `keyOf`), in the order of their turns. */
  readonly callers = new Map<string, Calls<T>>();
  size = 0;
}

/**
 * Deficit round-robin over callers: every call costs one token and every turn brings one, so that
 * no deficit is left to carry over. Each service takes a turn of its own; all customers together
 * take one, which goes round among them. A caller that leaves gives its turn up, and a new caller
 * comes last.
 */
export class Turns<T> {
  readonly #groups = new Map<string, Group<T>>();
  /** How many calls wait. */
  size = 0;

  /** The call whose turn it is. */
  get first(): T | undefined {
    const [group] = this.#groups.values();
    const [calls] = group?.callers.values() ?? [];
    return calls?.oldest;
  }

  /** All callers: first the next one of each group, then all others. */
  get callers(): [key: string, Calls<T>][] {
    const groups = [...this.#groups.values()].map(({ callers }) => [...callers]);
    return [...groups.flatMap((all) => all.slice(0, 1)), ...groups.flatMap((all) => all.slice(1))];
  }

  /** The calls of this caller, if any wait. */
  callsOf(key: string): Calls<T> | undefined {
    return this.#groups.get(groupOf(key))?.callers.get(key);
  }

  add(key: string, call: T): void {
    const group = this.#groups.get(groupOf(key)) ?? new Group<T>();
    this.#groups.set(groupOf(key), group);
    const calls = group.callers.get(key) ?? new ByAge<true, T>();
    group.callers.set(key, calls);
    calls.set(call, true);
    group.size++;
    this.size++;
  }

  /** Removes a call; if it was `served`, its caller has had its turn and goes last. */
  remove(key: string, call: T, { served }: { readonly served: boolean }): void {
    const group = this.#groups.get(groupOf(key));
    const calls = group?.callers.get(key);
    if (!group || !calls?.delete(call)) return;
    group.size--;
    this.size--;
    if (calls.size === 0) group.callers.delete(key);
    if (group.size === 0) this.#groups.delete(groupOf(key));
    if (!served) return;
    if (group.callers.delete(key)) group.callers.set(key, calls);
    if (this.#groups.delete(groupOf(key))) this.#groups.set(groupOf(key), group);
  }

  /** Tokens that go to others, and to `own` calls of this caller, before its next call gets one. */
  ahead(key: string, own: number): number {
    const group = this.#groups.get(groupOf(key));
    // For each turn taken here, every other caller and group takes one too.
    const ahead = own + inTurns(group?.callers ?? new Map(), group?.callers.get(key), own + 1);
    return ahead + inTurns(this.#groups, group, ahead + 1);
  }
}

/** Tokens that all but `self` get in so many turns; an upper bound if there are more than 100. */
function inTurns<Of extends { readonly size: number }>(
  all: ReadonlyMap<string, Of>,
  self: Of | undefined,
  turns: number,
): number {
  if (all.size > 100) return turns * all.size;
  let tokens = 0;
  for (const other of all.values()) if (other !== self) tokens += Math.min(other.size, turns);
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
