import { type DescEnum, type JsonObject, toJson } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { paint, printable } from "../src/cli/terminal.ts";
import {
  CallOutcome,
  CallOutcomeSchema,
  type Event,
  EventSchema,
  EventSourceSchema,
} from "../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperation,
  PaymentOperationSchema,
  PaymentState,
  PaymentStateSchema,
  PaymentStatus,
  PaymentStatusSchema,
} from "../src/gen/payments/v1/payment_pb.ts";
import { type KindName, kinds, kindOf as storedKind } from "../src/model/kinds.ts";
import { unrecognizedIn } from "../src/model/unrecognized.ts";
import { splitSecrets } from "../src/secrets/secret-fields.ts";

/**
 * The status that the event reports, in lower case: of a payment or payout, or the outcome of a
 * call without an answer (`unknown`, `settled`, `not_done`, `needs_operator`). Empty if absent; the
 * service's own word if it is none that the gateway knows.
 */
export function statusOf({ resource, callOutcome }: Event): string {
  if (callOutcome !== CallOutcome.UNSPECIFIED) return nameOf(CallOutcomeSchema, callOutcome);
  switch (resource.case) {
    case undefined:
      return "";
    case "payment": {
      const status = resource.value.details?.status ?? PaymentStatus.UNSPECIFIED;
      if (status !== PaymentStatus.UNSPECIFIED) return nameOf(PaymentStatusSchema, status);
      return unrecognizedIn(resource.value, "details.status") ?? "";
    }
    case "payout":
      return resource.value.status?.toLowerCase() ?? "";
  }
}

/** All values that `stateOf` may return, except for the empty string. */
export const states: readonly string[] = PaymentStateSchema.values
  .filter(({ number }) => number !== PaymentState.UNSPECIFIED)
  .map(({ number }) => nameOf(PaymentStateSchema, number));

/** The state of the payment or payout after this event, in lower case; empty if unspecified. */
export function stateOf({ state }: Event): string {
  return state === PaymentState.UNSPECIFIED ? "" : nameOf(PaymentStateSchema, state);
}

/** An event as one line of readable text. */
export function eventLine(event: Event): string {
  const { operation, statusCode, amount, currency } = shownOf(event);
  const status = statusOf(event);
  const unrecognized = event.resource.value?.unrecognized ?? [];
  const time = event.receivedAt ? timestampDate(event.receivedAt).toISOString() : "";
  return [
    paint("dim", time),
    pad(kindOf(event), 7),
    paint("bold", pad(printable(event.externalId), 24)),
    pad(printable(operation), 9),
    pad(printable(status || "-"), 8),
    paint(colours[event.state] ?? "yellow", pad(stateOf(event) || "-", 10)),
    pad(printable([amount, currency].filter(Boolean).join(" ")), 14),
    paint("dim", nameOf(EventSourceSchema, event.source)),
    ...(statusCode && statusCode !== status ? [printable(statusCode)] : []),
    ...unrecognized.map(({ field, value }) =>
      paint("yellow", printable(`unrecognized ${field} ${value}`)),
    ),
  ].join("  ");
}

/** An event as JSON with the proto's field names, without its secret fields such as card tokens. */
export function eventJson(event: Event): JsonObject {
  const { open } = splitSecrets(EventSchema, event);
  return toJson(EventSchema, open, { useProtoFieldName: true }) as JsonObject;
}

export function kindOf({ kind }: Event): KindName {
  return kinds[storedKind(kind)].name;
}

interface Shown {
  readonly operation: string;
  readonly amount?: string | undefined;
  readonly currency?: string | undefined;
  readonly statusCode?: string | undefined;
}

function shownOf({ resource }: Event): Shown {
  switch (resource.case) {
    case undefined:
      return { operation: "call" };
    case "payment": {
      const { operation, details } = resource.value;
      const { amount, currency, statusCode } = details ?? {};
      const name =
        unrecognizedIn(resource.value, "operation") ??
        nameOf(PaymentOperationSchema, operation || PaymentOperation.PAYMENT);
      return { operation: name, amount, currency, statusCode };
    }
    case "payout": {
      const { originalAmount: amount, currency, statusCode } = resource.value;
      return { operation: "payout", amount, currency, statusCode };
    }
  }
}

const colours: { readonly [state in PaymentState]?: Parameters<typeof paint>[0] } = {
  [PaymentState.PAID]: "green",
  [PaymentState.AUTHORIZED]: "green",
  [PaymentState.FAILED]: "red",
  [PaymentState.CANCELLED]: "red",
  [PaymentState.UNKNOWN]: "magenta",
};

/** The name of an enum value without the enum's prefix, in lower case. */
function nameOf(schema: DescEnum, number: number): string {
  return schema.value[number]?.localName.toLowerCase() ?? String(number);
}

function pad(text: string, width: number): string {
  return text.padEnd(width);
}
