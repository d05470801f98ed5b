import type { MoneyMethod } from "../../src/model/money-methods.ts";

/** What a world is made of: some calls for one external_id, and how much may go wrong. */
export interface Scene {
  readonly name: string;
  readonly calls: readonly CallOf[];
  /** How many requests and callbacks may be lost, processes die, and messages come twice. */
  readonly losses?: number;
  readonly crashes?: number;
  readonly repeats?: number;
  /** How many commits of a process may stay without the store's answer. */
  readonly silences?: number;
  /** How many payments the merchant takes back, elsewhere. */
  readonly cancels?: number;
  /** The last tick at which a call begins. Default: the first. */
  readonly lastBegin?: number;
  /** Two replicas, which keep copies of the records and of their own calls; the store goes away once. */
  readonly replicas?: boolean;
}

export interface CallOf {
  readonly method: MoneyMethod;
  readonly does: readonly Does[];
  readonly hold?: boolean;
  readonly key?: string;
  readonly replica?: 0 | 1;
  /** The call whose payment it confirms. */
  readonly confirms?: number;
  /** It is made only once this call is known to have failed. */
  readonly afterFailureOf?: number;
}

/** What the service may do with a request: `declined` is a failed attempt that its Error object does not name. */
export type Does = "pending" | "success" | "failure" | "declined" | "refused" | "busy";

/** Those that take longest come first, so that two threads end together. */
export const scenes: readonly Scene[] = [
  {
    name: "a recurrent payment after a failure",
    calls: [
      { method: "CreatePayment", does: ["failure", "declined", "success"] },
      { method: "CreateRecurrentPayment", does: ["success", "failure"], afterFailureOf: 0 },
      { method: "CreateRecurrentPayment", does: ["success"], afterFailureOf: 0 },
    ],
    ...{ losses: 2, crashes: 1, lastBegin: 1 },
  },
  {
    name: "a hold and its confirmation",
    calls: [
      { method: "CreatePayment", hold: true, does: ["pending", "success", "failure"] },
      { method: "ConfirmPayment", confirms: 0, does: ["success", "declined", "refused"] },
    ],
    ...{ losses: 2, crashes: 1, repeats: 2, lastBegin: 1 },
  },
  {
    name: "a hold that is cancelled and made again",
    calls: [
      { method: "CreatePayment", hold: true, does: ["success"] },
      { method: "CreatePayment", hold: true, does: ["pending", "success", "failure", "declined"] },
      { method: "CreatePayment", hold: true, does: ["success", "failure"] },
    ],
    ...{ losses: 2, cancels: 1, lastBegin: 1 },
  },
  {
    name: "payments that are cancelled",
    calls: [
      { method: "CreatePayment", does: ["success", "failure"] },
      { method: "CreatePayment", does: ["pending", "success", "declined"] },
      { method: "CreatePayment", does: ["success", "refused"] },
    ],
    ...{ losses: 2, cancels: 2, crashes: 1, lastBegin: 1 },
  },
  {
    name: "two creates",
    calls: [
      { method: "CreatePayment", does: ["pending", "success", "failure", "declined"] },
      { method: "CreatePayment", does: ["pending", "success", "failure", "refused"] },
    ],
    ...{ losses: 2, crashes: 1, repeats: 2, lastBegin: 1 },
  },
  {
    name: "two replicas and a store that goes away",
    calls: [
      { method: "CreatePayment", replica: 0, does: ["success", "failure"] },
      { method: "CreatePayment", replica: 0, does: ["success", "failure"] },
      { method: "CreatePayment", replica: 1, does: ["success"] },
    ],
    ...{ losses: 1, silences: 1 },
    replicas: true,
  },
  {
    name: "payouts with a key",
    calls: [
      { method: "RequestPayout", key: "k", does: ["pending", "success", "failure", "busy"] },
      { method: "RequestPayout", key: "k", does: ["success"] },
      { method: "RequestPayout", does: ["success"] },
    ],
    ...{ losses: 2, crashes: 1, repeats: 1, silences: 1, lastBegin: 1 },
  },
];
