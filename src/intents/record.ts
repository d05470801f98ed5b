import { kindOf } from "../model/kinds.ts";
import type { Intent, IntentState, MoneyMethod } from "./store.ts";

/** The fields of an intent's Redis hash, names and values in turn. The store sets the times. */
export function intentFields(intent: Intent): string[] {
  return Object.entries({
    id: intent.id,
    method: intent.method,
    kind: String(intent.kind),
    external_id: intent.externalId,
    state: intent.state,
    subject: intent.subjectId,
    answered: JSON.stringify(intent.answered),
    checks: String(intent.checks),
    not_found: String(intent.notFound),
    key: intent.keyDigest,
  }).flat();
}

/** Reads an intent from its hash; undefined if that is gone or only notes that the call ended. */
export function readIntent(fields: Readonly<Record<string, string>>): Intent | undefined {
  if (!fields.id) return undefined;
  return {
    id: fields.id,
    method: fields.method as MoneyMethod,
    kind: kindOf(Number(fields.kind)),
    externalId: fields.external_id ?? "",
    state: fields.state as IntentState,
    startedAtMs: Number(fields.started),
    leaseUntilMs: Number(fields.until),
    subjectId: fields.subject ?? "",
    answered: marksOf(fields.answered),
    checks: Number(fields.checks ?? 0),
    notFound: Number(fields.not_found ?? 0),
    needsOperator: fields.needs_operator === "1",
    keyDigest: fields.key ?? "",
  };
}

/** Reads stored marks. Lua writes an empty list as an empty object. */
export function marksOf(stored: string | undefined): string[] {
  return Object.values(JSON.parse(stored || "[]") as Record<string, string>);
}
