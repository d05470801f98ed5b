import type { Kind } from "../model/kinds.ts";
import type { Entry, Unfinished } from "./log.ts";
import { payingOperations } from "./payment-state.ts";

/** Most unfinished operations kept per account; beyond that the oldest are dropped. */
export const maxUnfinished = 100_000;

/**
 * Far more than the ids of requests and of the service need. Operations with longer members are not
 * recorded, so they are never looked up.
 */
const maxMemberChars = 2_048;

/**
 * Text under which an operation is recorded until its final state; undefined if it is not recorded,
 * because it does not pay or its ids are too long.
 */
export function memberOf({ kind, externalId, subjectId, operation }: Named): string | undefined {
  if (!payingOperations.has(operation)) return undefined;
  const member = JSON.stringify([kind, externalId, subjectId, operation]);
  return member.length > maxMemberChars ? undefined : member;
}

export function ofMember(member: string, ageMs: number): Unfinished {
  const [kind, externalId, subjectId, operation] = JSON.parse(member) as [
    Kind,
    string,
    string,
    string,
  ];
  return { kind, externalId, subjectId, operation, ageMs };
}

type Named = Pick<Entry, "kind" | "externalId" | "subjectId" | "operation">;
