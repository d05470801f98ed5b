import { GatewayError } from "../errors.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";

/** What money moves as: what calls are for, events are about and callbacks come for. */
export type Kind = Exclude<
  (typeof EventKind)[keyof typeof EventKind],
  typeof EventKind.UNSPECIFIED
>;

/** The words for each kind. A kind that is missing here, or in any other table of them, does not compile. */
export const kinds = {
  [EventKind.PAYMENT]: { name: "payment", resource: "payments" },
  [EventKind.PAYOUT]: { name: "payout", resource: "payouts" },
} as const satisfies Readonly<Record<Kind, { readonly name: string; readonly resource: string }>>;

/** In tokens, key names, metrics and traces, and on the console. */
export type KindName = (typeof kinds)[Kind]["name"];
/** In the paths of callbacks. */
export type Resource = (typeof kinds)[Kind]["resource"];

export const allKinds = Object.keys(kinds).map(Number) as readonly Kind[];
export const kindNames = allKinds.map((kind) => kinds[kind].name) as readonly KindName[];

export function isKind(value: number): value is Kind {
  return Object.hasOwn(kinds, value);
}

/** A kind that was stored. @throws GatewayError INTERNAL for one that a newer gateway wrote */
export function kindOf(value: number): Kind {
  if (isKind(value)) return value;
  throw new GatewayError("INTERNAL", `kind ${value} is not known: a newer gateway stored it`);
}

export function kindNamed(name: KindName): Kind;
export function kindNamed(name: string): Kind | undefined;
export function kindNamed(name: string): Kind | undefined {
  return allKinds.find((kind) => kinds[kind].name === name);
}

export function kindOfResource(resource: string): Kind | undefined {
  return allKinds.find((kind) => kinds[kind].resource === resource);
}
