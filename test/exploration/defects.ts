import { isSameOperation } from "../../src/ledger/facts.ts";
import type { PaymentRecord, StoredOperation } from "../../src/ledger/record.ts";
import type { Plant } from "./ledgers.ts";
import type { Stored } from "./store.ts";

/** What is planted into a world, to see that one of its checks finds it. */
export interface Defect {
  readonly scene: string;
  /** The promise that it breaks. */
  readonly breaks: string;
  /**
   * Changes what a step left in the store; or commits are made whatever the version of the record, or
   * the service's NOT_FOUND counts at once.
   */
  readonly plant: Plant | "ignoresVersions" | "believesNotFound";
}

/** At least one for each promise, in the scene that has to show it. */
const planted: Record<string, Record<string, Defect["plant"]>> = {
  "two creates": {
    "nothing is sent while a call of its method has no understood answer": eachCall(
      (call) => (call.state = "pending"),
    ),
    "a call of open outcome holds its lock": eachCall((call) => {
      if (!isRunning(call)) call.state = "pending";
    }),
    "what is paid is not shown as AUTHORIZED": eachOperation((one) => {
      if (one.held === false) one.held = true;
    }),
    "what may be charged is not told as not done": "believesNotFound",
    "what was acknowledged is in the log": (after, before) => Object.assign(after, before()),
    "each open call is looked up, or flagged for an operator": ({ due }) => due.shift(),
    "what is paid and known is shown so": eachOperation((one) => {
      if (one.status === "success") one.status = "failure";
    }),
    "a call that was told as settled is not open"(after, before) {
      reopen(after, before);
      if (after.record) after.record.over = [];
    },
    "in the end each call is settled or flagged": eachCall((call) => {
      if (call.state === "pending") call.needsOperator = false;
    }),
    "in the end no lock is left": eachCall((call) => {
      if (call.needsOperator) Object.assign(call, { state: "unknown", needsOperator: false });
    }),
  },
  "a hold that is cancelled and made again": {
    "in the end the state is the service's": eachOperation((one) => {
      if (one.operation === "cancel") one.status = "failure";
    }),
  },
  "a hold and its confirmation": {
    "what is not paid is not shown as PAID": dropHolds,
    "no event tells as PAID what is not": dropHolds,
    "one callback is one event": (after) => (after.flags = {}),
    "each operation has its event": ({ events }) => events.splice(0),
  },
  "a recurrent payment after a failure": {
    "while an outcome is open, UNKNOWN is shown": eachCall((call) =>
      Object.assign(call, { state: "pending", subjectId: "p0" }),
    ),
    "an operation is never forgotten": ({ record }) => record?.operations.splice(1),
    "a loss is published": (after) =>
      (after.log = after.log.filter((one) => !/UNKNOWN$/.test(one))),
    "a call that may move money is open": dropLost,
    "in the end the state is the service's": eachOperation((one) => (one.held = true)),
  },
  "payouts with a key": {
    "while an outcome is open, UNKNOWN is shown": dropLost,
    "a key's request is sent once": (after) => (after.keys = {}),
    "a key's repeat gets the first answer": ({ answers }) =>
      answers.k && Object.assign(answers, { k: "1 2" }),
    "a key's answer stays"({ answers }, before) {
      if (before().answers.k) answers.k = "0 0";
    },
    "an operation never goes back"({ record }, before) {
      const ended = before().record?.operations.filter(({ rank }) => rank === 2) ?? [];
      for (const one of record?.operations ?? []) {
        if (ended.some((other) => isSameOperation(one, other))) one.rank = 1;
      }
    },
    "no attempt is taken for two calls": eachCall((call) => (call.subjectId = "t0")),
  },
  "two replicas and a store that goes away": {
    "nothing is sent while a call of its method has no understood answer": "ignoresVersions",
    "a call is open once": ({ record }) => record?.calls.push(...record.calls.slice(0, 1)),
    "a call that is over is not open": reopen,
  },
};

export const defects: readonly Defect[] = Object.entries(planted).flatMap(([scene, all]) =>
  Object.entries(all).map(([breaks, plant]) => ({ scene, breaks, plant })),
);

function eachCall(change: (call: PaymentRecord["calls"][number]) => unknown): Plant {
  return ({ record }) => record?.calls.forEach(change);
}

function eachOperation(change: (one: StoredOperation) => unknown): Plant {
  return ({ record }) => record?.operations.forEach(change);
}

function isRunning({ state }: PaymentRecord["calls"][number]): boolean {
  return state === "running";
}

function dropLost({ record }: Stored): void {
  if (record) record.calls = record.calls.filter(isRunning);
}

function dropHolds({ record }: Stored): void {
  if (record) record.holds = [];
}

function reopen({ record }: Stored, before: () => Stored): void {
  const open = new Set(record?.calls.map(({ id }) => id));
  record?.calls.push(...(before().record?.calls.filter(({ id }) => !open.has(id)) ?? []));
}
