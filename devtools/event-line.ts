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
  PaymentStatusSchema,
} from "../src/gen/payments/v1/payment_pb.ts";
import { kindOf, kinds } from "../src/model/kinds.ts";
import { unrecognizedIn } from "../src/model/unrecognized.ts";
import { splitSecrets } from "../src/secrets/secret-fields.ts";

/**
 * The status that the event reports, in lower case: of a payment or payout, or the outcome of a
 * call without an answer (`unknown`, `settled`, `not_done`, `needs_operator`). Empty if absent; the
 * service's own word if it is none that the gateway knows.
 */
export function statusOf(event: Event): string {
  const { callOutcome } = event;
  if (callOutcome !== CallOutcome.UNSPECIFIED) return nameOf(CallOutcomeSchema, callOutcome);
  return shownOf(event).status;
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
    kinds[kindOf(event.kind)].name.padEnd(7),
    paint("bold", printable(event.externalId).padEnd(24)),
    printable(operation).padEnd(9),
    printable(status || "-").padEnd(8),
    paint(colours[event.state] ?? "yellow", (stateOf(event) || "-").padEnd(10)),
    printable([amount, currency].filter(Boolean).join(" ")).padEnd(14),
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

interface Shown {
  readonly operation: string;
  /** In lower case; empty if absent. */
  readonly status: string;
  readonly amount?: string | undefined;
  readonly currency?: string | undefined;
  readonly statusCode?: string | undefined;
}

function shownOf({ resource }: Event): Shown {
  switch (resource.case) {
    case undefined:
      return { operation: "call", status: "" };
    case "payment": {
      const { details } = resource.value;
      const { status: known, amount, currency, statusCode } = details ?? {};
      const operation =
        unrecognizedIn(resource.value, "operation") ??
        nameOf(PaymentOperationSchema, resource.value.operation || PaymentOperation.PAYMENT);
      const status = known
        ? nameOf(PaymentStatusSchema, known)
        : unrecognizedIn(resource.value, "details.status");
      return { operation, status: status ?? "", amount, currency, statusCode };
    }
    case "payout": {
      const { status = "", originalAmount: amount, currency, statusCode } = resource.value;
      return { operation: "payout", status: status.toLowerCase(), amount, currency, statusCode };
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
