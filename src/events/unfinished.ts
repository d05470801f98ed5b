import type { Kind } from "../model/kinds.ts";
import type { Entry, Unfinished } from "./log.ts";
import { payingOperations } from "./payment-state.ts";

/** So many of an account are kept in mind; of more the oldest are forgotten first. */
export const maxUnfinished = 100_000;

/** Far more than ids of requests and of the service make: what is longer is not looked up. */
const maxMemberChars = 2_048;

/** How the operation of an entry is remembered until its end; undefined for those that are not. */
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
