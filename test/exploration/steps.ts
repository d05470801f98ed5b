/** The steps of a scene on what is stored: calls of the production functions, which alone decide. */
import { create } from "@bufbuild/protobuf";
import { EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperation,
  PaymentSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  addNews,
  adoptCall,
  beginCall,
  endCall,
  giveUpCall,
  intentOfCall,
  lookedAt,
  newCall,
} from "../../src/ledger/calls.ts";
import type { Draft } from "../../src/ledger/change.ts";
import { paymentEntry, payoutEntry } from "../../src/ledger/entry.ts";
import { markOf, markOfRefusal } from "../../src/ledger/evidence.ts";
import type { Ending, Intent, NewIntent } from "../../src/ledger/intents.ts";
import type { Entry } from "../../src/ledger/log.ts";
import { adoptOwn, beginOwn, endOwn } from "../../src/ledger/process-calls.ts";
import { newRecord, ofRecordKey, type PaymentRecord, recordKey } from "../../src/ledger/record.ts";
import { type MoneyMethod, moneyMethods } from "../../src/model/money-methods.ts";
import type { CallOf, Scene } from "./scenes.ts";
import { ages, giveUpMs, leaseMs, type On, type Step, timeOf } from "./store.ts";

/** What became of a request at the service. */
export const At = {
  ...{ nowhere: 0, lost: 1, pending: 2, success: 3, failure: 4, cancelled: 5, refused: 6 },
} as const;
/** The places that callbacks tell of. */
export const toldPlaces = [At.pending, At.success, At.failure, At.cancelled] as const;
/** The service's answer. */
export const Said = {
  ...{ nothing: 0, pending: 1, success: 2, failure: 3, declined: 4, refused: 5, paid: 6, busy: 7 },
} as const;

/** An entry, and in place of a `traceparent` what it tells in brief. */
type Told = Entry & { readonly trace: string };

interface Ended {
  readonly ending: Ending;
  readonly told?: Told;
}

function recordIn({ value }: Draft): PaymentRecord {
  return (value as PaymentRecord | undefined) ?? newRecord();
}

const externalId = "order-1";

export function recordKeyOf({ calls }: Scene): string {
  return recordKey(moneyMethods[calls[0]!.method].kind, externalId);
}

/** All steps of a scene, and the numbers of each kind, by call. */
export function stepsOf({ calls }: Scene) {
  const steps: Step[] = [];
  const add = (decide: Step["decide"], acknowledges = "", isOwn = false) =>
    steps.push({ decide, acknowledges, isOwn }) - 1;
  /** A step on the calls that a process keeps. */
  const addOwn = (decide: (own: PaymentRecord, on: On) => unknown) =>
    add(
      (on) => {
        const own = { ...recordIn(on.draft), changes: 1 };
        on.draft.value = own;
        return decide(own, on);
      },
      "",
      true,
    );
  const each = <T>(of: (call: CallOf, i: number) => T) => calls.map(of);
  const givenOf = ({ method, hold, key }: CallOf, i: number): NewIntent => ({
    ...{ id: `c${i}`, method, kind: moneyMethods[method].kind, externalId, leaseMs },
    ...(hold && { hold }),
    ...(key !== undefined && { key: { digest: key, fingerprints: ["request"] } }),
  });
  /** The call as its process knows it. */
  const intentOf = (call: CallOf, i: number, { draft, stored, began }: On): Intent => {
    const known = recordIn(draft).calls.find(({ id }) => id === `c${i}`);
    const startedAtMs = known ? Number(known.startedAt) : Math.max(stored.awayMs, timeOf(began));
    return intentOfCall(ofRecordKey(draft.key), newCall(givenOf(call, i), startedAtMs));
  };
  const begin = (call: CallOf, i: number) => (on: On) => {
    const begun = beginCall(on.change, on.draft, on.keyOf(call.key), givenOf(call, i));
    return typeof begun === "string" ? begun : "started";
  };
  const adopt = (call: CallOf, i: number) => (on: On) =>
    adoptCall(on.change, on.draft, givenOf(call, i), intentOf(call, i, on).startedAtMs);
  const end = (call: CallOf, i: number, on: On, { ending, told }: Ended) => {
    const [intent, key] = [intentOf(call, i, on), on.keyOf(call.key)];
    on.change.trace = told?.trace;
    endCall(on.change, on.draft, key, { ...intent, given: givenOf(call, i) }, ending, told);
  };
  return {
    steps,
    begin: each((call, i) => add(begin(call, i))),
    /** The call was not sent. */
    free: each((call, i) =>
      add((on) => end(call, i, on, { ending: { state: "closed", key: "free" } })),
    ),
    end: each((call, i) =>
      Object.values(Said).map((said) => {
        const ended = endingOf(call, i, said);
        // An answer that comes late adds nothing.
        const acknowledges = ended.told && (said === Said.pending ? `${i} ` : ended.told.trace);
        return add((on) => end(call, i, on, ended), acknowledges);
      }),
    ),
    adopt: each((call, i) => add(adopt(call, i))),
    /** The reconciler turns to a call: before it asks the service. */
    look: each((_, i) =>
      add(({ change, draft }) => {
        const { calls } = recordIn(draft);
        const call = calls.find(({ id }) => id === `c${i}`);
        if (!call) return;
        const intent = intentOfCall(ofRecordKey(draft.key), call);
        if (call.state === "running") {
          endCall(change, draft, undefined, intent, { state: "unknown" });
        } else if (change.nowMs - intent.startedAtMs > giveUpMs) {
          giveUpCall(change, draft, call.id);
        }
      }),
    ),
    /** The service was asked often enough, and does not have the call. */
    notFound: each((_, i) =>
      add(({ change, draft }) => {
        const look = { checks: 3, notFound: 3, inMs: 1_000, neverArrived: true };
        lookedAt(change, draft, `c${i}`, look);
      }),
    ),
    /** By source, call and place. */
    news: [EventSource.CALLBACK, EventSource.RECONCILIATION].flatMap((source) =>
      [0, 1, 2].flatMap((i) =>
        toldPlaces.map((at) => {
          const call = calls[i];
          const entry = call && entryOf(call, i, at, source);
          const acknowledges = source === EventSource.CALLBACK ? `${i} ${at}` : `${i} `;
          const tell = ({ change, draft }: On) => {
            change.trace = entry?.trace;
            return entry && addNews(change, draft, entry);
          };
          return add(tell, acknowledges);
        }),
      ),
    ),
    /** Calls that a process keeps. */
    ownBegin: each((call, i) =>
      addOwn((own, { change: { nowMs } }) =>
        beginOwn(own, givenOf(call, i), nowMs, ages) ? "started" : "inFlight",
      ),
    ),
    ownAdopt: each((call, i) =>
      addOwn((own, on) =>
        adoptOwn(own, newCall(givenOf(call, i), intentOf(call, i, on).startedAtMs)),
      ),
    ),
    ownEnd: each((call, i) =>
      Object.values(Said).map((said) => {
        const { ending, told } = endingOf(call, i, said);
        return addOwn((own) => endOwn(own, `c${i}`, ending, told));
      }),
    ),
    /** The store has them. */
    ownForget: each((_, i) =>
      add(
        ({ draft }) => {
          const { calls, ...record } = recordIn(draft);
          const left = calls.filter(({ id }) => id !== `c${i}`);
          draft.value = left.length > 0 ? { ...record, calls: left } : undefined;
        },
        "",
        true,
      ),
    ),
    away: add(({ change, stored }) => {
      stored.awayMs = change.nowMs;
    }),
  };
}

/** The entry of an attempt, as a callback, an answer or a look-up tells it. */
function entryOf(call: CallOf, i: number, at: number, source: EventSource): Told {
  const { method, confirms } = call;
  const trace = `${i} ${at}`;
  const given = { source, externalId };
  const raw = source === EventSource.CALLBACK ? { raw: Buffer.from(trace) } : {};
  if (method === "RequestPayout") {
    const status = at === At.pending ? "processing" : at === At.success ? "success" : "failure";
    const payout = create(PayoutSchema, { transactionId: `t${i}`, externalId, status });
    return { ...payoutEntry(payout, { ...given, ...raw })!, trace };
  }
  const { PENDING, SUCCESS, FAILURE } = PaymentStatus;
  const status = at === At.pending ? PENDING : at === At.failure ? FAILURE : SUCCESS;
  const operation = at === At.cancelled ? PaymentOperation.CANCEL : operationOf[method];
  const payment = create(PaymentSchema, {
    ...{ externalId, operation, isSuccess: status === SUCCESS },
    details: {
      ...{ paymentId: `p${confirms ?? i}`, status, amount: "10.00", currency: "UAH" },
      ...(confirms !== undefined && { operationId: `o${i}` }),
    },
  });
  const isAnswer = source === EventSource.RESPONSE;
  const entry = paymentEntry(payment, {
    ...{ ...given, ...raw, ...(isAnswer && { operation }) },
    ...(isAnswer && confirms === undefined && { held: call.hold === true, call: `c${i}` }),
  });
  return { ...entry!, trace };
}

/** What a call's process makes of an answer, as `src/core/money-calls.ts` does. */
function endingOf(call: CallOf, i: number, said: number): Ended {
  const { method, confirms } = call;
  const key = Buffer.from(`${i} ${said}`);
  if (said === Said.nothing) return { ending: { state: "unknown" } };
  if (said === Said.busy) return { ending: { state: "closed", key: "free" } };
  if (said > Said.failure) {
    const paid = said === Said.paid ? { code: "transaction_already_paid" } : undefined;
    const ending: Ending = { state: "closed", mark: markOfRefusal(method, undefined), key, paid };
    if (said !== Said.declined || confirms === undefined) return { ending };
    const payment = create(PaymentSchema, {
      ...{ externalId, isSuccess: false, operation: PaymentOperation.CONFIRM },
      details: { paymentId: `p${confirms}`, status: PaymentStatus.FAILURE },
    });
    const told = paymentEntry(payment, { source: EventSource.RESPONSE, attempt: `c${i}` })!;
    return { ending, told: { ...told, trace: `${i} ${At.failure}` } };
  }
  const told = entryOf(call, i, said + 1, EventSource.RESPONSE);
  const { subjectId } = told;
  const mark = markOf(method, told);
  return told.rank < 2
    ? { ending: { state: "pending", subjectId, mark, key }, told }
    : { ending: { state: "closed", mark, key }, told };
}

const operationOf: Record<Exclude<MoneyMethod, "RequestPayout">, PaymentOperation> = {
  CreatePayment: PaymentOperation.PAYMENT,
  CreateRecurrentPayment: PaymentOperation.RECURRENT,
  ConfirmPayment: PaymentOperation.CONFIRM,
};
