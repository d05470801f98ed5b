import type { DescEnum, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { CallOutcomeSchema, type Event, EventSourceSchema } from "../gen/payments/v1/event_pb.ts";
import {
  PaymentOperationSchema,
  PaymentSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import type { Intent } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { PlacedFact } from "../ledger/log.ts";
import { standingOf, unsettledOf } from "../ledger/open-calls.ts";
import { traceOf } from "../ledger/stored-event.ts";
import { type KindName, kindNamed } from "../model/kinds.ts";
import { unrecognizedIn } from "../model/unrecognized.ts";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";
import { keepDigits, mask } from "../secrets/redact.ts";
import { splitSecrets } from "../secrets/secret-fields.ts";
import { msOf } from "../stores/cursor.ts";
import { encode } from "../wire/wire.ts";
import type { History, HistoryEvent, OperationState } from "./console-api.ts";

/** All that is known of a payment or payout, with secrets masked. */
export async function historyOf(
  ledger: Ledger,
  account: string,
  name: KindName,
  externalId: string,
): Promise<Omit<History, "calls"> & { readonly calls: readonly Intent[] }> {
  const kind = kindNamed(name);
  const [events, known] = await Promise.all([
    ledger.history(account, kind, externalId, maxEvents),
    ledger.known(account, kind, externalId),
  ]);
  const standing = standingOf(kind, known);
  return {
    nowMs: Date.now(),
    state: standing && nameOf(PaymentStateSchema, standing.state),
    needsOperator: standing?.needsOperator ?? false,
    operations: known.operations.map(operationView),
    calls: unsettledOf(known.calls, ledger.nowMs(account)),
    events: events.map(view).reverse(),
  };
}

function operationView(fact: PlacedFact): OperationState {
  const { subjectId, isAttempt, status, statusCode, amount, currency, words = [] } = fact;
  // Of an operation that the contract does not have, the service's own word.
  const [, operation = fact.operation] = words.find(([field]) => field === "operation") ?? [];
  const operationId = isAttempt ? "" : fact.operationId;
  const texts = Object.entries({ operationId, status, statusCode, amount, currency });
  return {
    ...{ operation, subjectId, atMs: msOf(fact.place) },
    ...Object.fromEntries(texts.filter(([, text]) => text)),
  };
}

const maxEvents = 100;

function view(event: Event): HistoryEvent {
  const { cursor, source, receivedAt, final, callOutcome, paymentId, transactionId } = event;
  const words = event.resource.value?.unrecognized ?? [];
  return {
    cursor,
    receivedAtMs: receivedAt ? timestampMs(receivedAt) : 0,
    // A traceparent is `version-trace-span-flags`.
    traceId: traceOf(event)?.split("-")[1],
    source: nameOf(EventSourceSchema, source)?.toUpperCase() ?? "",
    final,
    callOutcome: nameOf(CallOutcomeSchema, callOutcome)?.toUpperCase(),
    state: nameOf(PaymentStateSchema, event.state),
    subjectId: paymentId ?? transactionId,
    ...resourceView(event),
    unrecognized:
      words.length === 0 ? undefined : words.map(({ field, value }) => ({ field, value })),
  };
}

function resourceView({ resource }: Event): Partial<HistoryEvent> {
  switch (resource.case) {
    case undefined:
      return {};
    case "payment": {
      const { operation, details } = resource.value;
      return {
        operation:
          nameOf(PaymentOperationSchema, operation) ?? unrecognizedIn(resource.value, "operation"),
        status:
          (details && nameOf(PaymentStatusSchema, details.status)) ??
          unrecognizedIn(resource.value, "details.status"),
        statusCode: details?.statusCode,
        amount: details?.amount,
        currency: details?.currency,
        message: maskedMessage(PaymentSchema, resource.value),
      };
    }
    case "payout": {
      const { status, statusCode, originalAmount: amount, currency } = resource.value;
      const message = maskedMessage(PayoutSchema, resource.value);
      return { status: status?.toLowerCase(), statusCode, amount, currency, message };
    }
  }
}

/** A message as indented JSON of the REST interface, its secrets masked. */
function maskedMessage<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>) {
  const { open } = splitSecrets(schema, message, mask);
  const shown = JSON.parse(encode(schema, open), (name, value, context?: { source?: string }) =>
    typeof value === "string" && !isIdentifier(name)
      ? maskCardNumbers(value)
      : keepDigits(name, value, context),
  );
  return JSON.stringify(shown, undefined, 2);
}

/** Identifiers are not masked as card numbers: an order's number may look like one. */
function isIdentifier(name: string): boolean {
  return /(?:^|_)(?:id|rrn|mask)$/.test(name);
}

/** An enum value's name in lower case, without its prefix; undefined for 0 and unknown values. */
export function nameOf(desc: DescEnum, value: number): string | undefined {
  if (value === 0) return undefined;
  return desc.value[value]?.localName.toLowerCase();
}
