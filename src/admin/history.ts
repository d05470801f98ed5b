import type { DescEnum } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { CallOutcomeSchema, type Event, EventSourceSchema } from "../gen/payments/v1/event_pb.ts";
import {
  PaymentOperationSchema,
  PaymentSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import type { EventLog } from "../ledger/log.ts";
import { type KindName, kindNamed } from "../model/kinds.ts";
import { unrecognizedIn } from "../model/unrecognized.ts";
import type { HistoryEvent } from "./console-api.ts";
import { maskedMessage } from "./masked-message.ts";

/** The latest events of a payment or payout, newest first, with their secrets masked. */
export async function historyOf(
  log: EventLog,
  account: string,
  kind: KindName,
  externalId: string,
): Promise<HistoryEvent[]> {
  const events = await log.history(account, kindNamed(kind), externalId, maxEvents);
  return events.map(view).reverse();
}

const maxEvents = 100;

function view(event: Event): HistoryEvent {
  const { cursor, source, receivedAt, final, callOutcome, paymentId, transactionId } = event;
  return {
    cursor,
    receivedAtMs: receivedAt ? timestampMs(receivedAt) : 0,
    source: nameOf(EventSourceSchema, source)?.toUpperCase() ?? "",
    final,
    ...given("callOutcome", nameOf(CallOutcomeSchema, callOutcome)?.toUpperCase()),
    ...given("state", nameOf(PaymentStateSchema, event.state)),
    ...given("subjectId", paymentId ?? transactionId),
    ...resourceView(event),
    ...unrecognizedView(event),
  };
}

function resourceView({ resource }: Event): Partial<HistoryEvent> {
  switch (resource.case) {
    case undefined:
      return {};
    case "payment": {
      const { operation, details } = resource.value;
      return {
        ...given(
          "operation",
          nameOf(PaymentOperationSchema, operation) ?? unrecognizedIn(resource.value, "operation"),
        ),
        ...given(
          "status",
          (details && nameOf(PaymentStatusSchema, details.status)) ??
            unrecognizedIn(resource.value, "details.status"),
        ),
        ...given("statusCode", details?.statusCode),
        ...given("amount", details?.amount),
        ...given("currency", details?.currency),
        message: maskedMessage(PaymentSchema, resource.value),
      };
    }
    case "payout": {
      const { status, statusCode, originalAmount, currency } = resource.value;
      return {
        ...given("status", status?.toLowerCase()),
        ...given("statusCode", statusCode),
        ...given("amount", originalAmount),
        ...given("currency", currency),
        message: maskedMessage(PayoutSchema, resource.value),
      };
    }
  }
}

function unrecognizedView({ resource }: Event): Pick<HistoryEvent, "unrecognized"> {
  const words = resource.value?.unrecognized ?? [];
  if (words.length === 0) return {};
  return { unrecognized: words.map(({ field, value }) => ({ field, value })) };
}

/** An enum value's name in lower case, without its prefix; undefined for 0 and unknown values. */
function nameOf(desc: DescEnum, value: number): string | undefined {
  if (value === 0) return undefined;
  return desc.value[value]?.name.slice(desc.sharedPrefix?.length).toLowerCase();
}

function given<Name extends string>(name: Name, value: string | undefined) {
  return (value === undefined ? {} : { [name]: value }) as { [N in Name]?: string };
}
