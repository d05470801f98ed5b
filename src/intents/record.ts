import { EventKind } from "../gen/payments/v1/event_pb.ts";
import type { Intent, IntentState, MoneyMethod } from "./store.ts";

/** An intent as the fields of its hash, names and values in turn. */
export function intentFields(intent: Intent): string[] {
  return Object.entries({
    id: intent.id,
    method: intent.method,
    kind: String(intent.kind),
    external_id: intent.externalId,
    state: intent.state,
    started: String(intent.startedAtMs),
    until: String(intent.leaseUntilMs),
    subject: intent.subjectId,
    answered: JSON.stringify(intent.answered),
    checks: String(intent.checks),
    not_found: String(intent.notFound),
    key: intent.keyDigest,
  }).flat();
}

/** The intent of a hash; undefined for one that is no more. */
export function readIntent(fields: Readonly<Record<string, string>>): Intent | undefined {
  if (!fields.id) return undefined;
  return {
    id: fields.id,
    method: fields.method as MoneyMethod,
    kind: Number(fields.kind) === EventKind.PAYOUT ? EventKind.PAYOUT : EventKind.PAYMENT,
    externalId: fields.external_id ?? "",
    state: fields.state as IntentState,
    startedAtMs: Number(fields.started),
    leaseUntilMs: Number(fields.until),
    subjectId: fields.subject ?? "",
    // Lua's empty list is written as an empty object.
    answered: Object.values(JSON.parse(fields.answered ?? "[]") as Record<string, string>),
    checks: Number(fields.checks ?? 0),
    notFound: Number(fields.not_found ?? 0),
    needsOperator: fields.needs_operator === "1",
    keyDigest: fields.key ?? "",
  };
}
