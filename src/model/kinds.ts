import { GatewayError } from "../errors.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";

/** Payment or payout: each call that moves money, each event and each callback is about one. */
export type Kind = Exclude<
  (typeof EventKind)[keyof typeof EventKind],
  typeof EventKind.UNSPECIFIED
>;

/** By kind: names, and how a look-up is answered. Code that lacks a kind here, or in another table by kind, does not compile. */
export const kinds = {
  [EventKind.PAYMENT]: { name: "payment", resource: "payments", answersByCallback: true },
  [EventKind.PAYOUT]: { name: "payout", resource: "payouts", answersByCallback: false },
} as const satisfies Readonly<Record<Kind, KindFacts>>;

interface KindFacts {
  readonly name: string;
  readonly resource: string;
  /** Whether the answer to a look-up comes as a callback. */
  readonly answersByCallback: boolean;
}

/** A kind's name in tokens, key names, metrics and traces, and on the console. */
export type KindName = (typeof kinds)[Kind]["name"];
/** A kind's segment in the paths of callbacks and of plain watches. */
export type Resource = (typeof kinds)[Kind]["resource"];

export const allKinds = Object.keys(kinds).map(Number) as readonly Kind[];
export const kindNames = allKinds.map((kind) => kinds[kind].name) as readonly KindName[];

export function isKind(value: number): value is Kind {
  return Object.hasOwn(kinds, value);
}

/** Checks a stored kind. @throws GatewayError INTERNAL if only a newer gateway knows it */
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
