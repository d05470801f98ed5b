import type { DescEnumValue } from "@bufbuild/protobuf";
import { type PaymentState, PaymentStateSchema } from "../gen/payments/v1/payment_pb.ts";
import { allKinds, type Kind, kinds } from "../model/kinds.ts";
import type { Change, Draft } from "./change.ts";
import { keptFor } from "./entries.ts";
import type { Ages } from "./intents.ts";
import type { Selection } from "./log.ts";
import { standingOf } from "./open-calls.ts";
import { statesOf } from "./payment-state.ts";
import { ofRecordKey, type PaymentRecord } from "./record.ts";

/**
 * Moves a record to the index of what it shows callers, if that has changed. The indexes of a kind
 * have each payment or payout that is known once, by when it was first heard of: so a list by state
 * reads no more than it shows, and that of all is their union. One of which nothing is known but that
 * its first calls run is listed with an answer, an event, or the end of a lease: to list it at once,
 * and to move it then, would double what lists cost Redis.
 */
export function list(change: Change, draft: Draft): void {
  const record = draft.value as PaymentRecord;
  const isBeginning =
    !record.index &&
    record.operations.length === 0 &&
    record.calls.every(({ state }) => state === "running");
  if (isBeginning) return;
  const { kind } = ofRecordKey(draft.key);
  const standing = standingOf(kind, record);
  const index = standing && indexOf(kind, standing.state, standing.needsOperator);
  const { index: before, firstSeen } = record;
  if (before === index) return;
  if (before) change.indexes.push({ index: before, member: draft.key, score: undefined });
  if (index) {
    const score = firstSeen ? Number(firstSeen) : "instant";
    change.indexes.push({ index, member: draft.key, score });
    Object.assign(record, { index, firstSeen: firstSeen ?? change.instant });
  } else {
    delete record.index;
    delete record.firstSeen;
  }
}

/** The indexes that have what is selected. */
export function indexesOf({ kind, states = [], needsOperator }: Selected): string[] {
  const wanted = states.length > 0 ? states : statesOf[kind];
  const flags = needsOperator === undefined ? [false, true] : [needsOperator];
  return [...new Set(wanted)].flatMap((state) => flags.map((flag) => indexOf(kind, state, flag)));
}

type Selected = Pick<Selection, "kind"> & Partial<Pick<Selection, "states" | "needsOperator">>;

/** All indexes that `list` keeps, and how long a record is kept that is in one, at least. */
export function expiringIndexes(ages: Pick<Ages, "retentionMs">) {
  return { indexes: allKinds.flatMap((kind) => indexesOf({ kind })), keepMs: keptFor(ages) };
}

function indexOf(kind: Kind, state: PaymentState, needsOperator: boolean): string {
  const { localName } = PaymentStateSchema.value[state] as DescEnumValue;
  return `${kinds[kind].name}:${localName}${needsOperator ? ":operator" : ""}`;
}
