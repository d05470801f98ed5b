import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperation,
  PaymentSchema,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  conclude,
  giveUpCall,
  intentOfCall,
  newCall,
  settleAsPaid,
  settleCalls,
} from "../../src/ledger/calls.ts";
import { Change, Draft } from "../../src/ledger/change.ts";
import { addEntry } from "../../src/ledger/entries.ts";
import { paymentEntry } from "../../src/ledger/entry.ts";
import { evidenceOf, markOfRefusal } from "../../src/ledger/evidence.ts";
import type { Ending } from "../../src/ledger/intents.ts";
import { outcomeFlags } from "../../src/ledger/open-calls.ts";
import { paymentState } from "../../src/ledger/payment-state.ts";
import { newRecord, type PaymentRecord, recordKey } from "../../src/ledger/record.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { filledIn } from "../../src/stores/kernel.ts";

const externalId = "order";
const { PAYMENT } = EventKind;
const ages = { retentionMs: 3_600_000, firstLookMs: 0, giveUpMs: 3_600_000 };
const methods: Readonly<Record<string, MoneyMethod>> = {
  ...{ "": "CreatePayment", payment: "CreatePayment" },
  ...{ recurrent: "CreateRecurrentPayment", confirm: "ConfirmPayment" },
};

/**
 * Plays a story of one external_id, whose calls stay open until it looks which are. Of a call `a`:
 * - `a runs confirm`, `a lost recurrent`: it begins, and is lost; without a word it is a CreatePayment;
 * - `a unknown`, `a given up`, `a vague` (pending, without a payment), `a answered p1` (with this mark),
 *   `a refused p1` and `a refused` (naming its payment or not): what becomes of it;
 * - `a? p1`, `a? p1 goes on`, `a?`: events show that it ended, or goes on, as `p1`, or nothing. The
 *   mark of a call that ended as nobody knows which payment is `? CreatePayment`; of one that the success of another settled, `! CreatePayment`.
 *
 * Of all: `p1 failure confirm o1 9.99` stores a callback; `said paid p1` is the service's answer that it
 * is paid already; `open b unknown, c pending` settles what can be, and says which calls are left;
 * `state` and `flags` say what is shown. The clock advances by a millisecond with each step.
 */
async function play(story: string): Promise<void> {
  const b = books();
  for (const line of story.split("; ")) {
    const [name = "", what = "", ...rest] = line.split(" ");
    const more = rest.join(" ");
    const end = (ending: Ending) => b.end(name, ending);
    if (/^p\d/.test(name)) b.tell(name, what, rest);
    else if (name === "said") b.saidPaid(rest[0]);
    else if (name === "open") assert.equal(b.settle(), line.slice(5), story);
    else if (name === "state")
      assert.equal(await b.state(), PaymentState[what as keyof typeof PaymentState], story);
    else if (name === "flags") assert.equal(await b.flags(), line.slice(6), story);
    else if (name.endsWith("?")) assert.equal(await b.evidenceOf(name[0]), line.slice(3), story);
    else if (what === "runs" || what === "lost") {
      b.begin(name, methods[more] as MoneyMethod);
      if (what === "lost") end({ state: "unknown" });
    } else if (what === "unknown") end({ state: "unknown" });
    else if (what === "given") b.giveUp(name);
    else if (what === "vague") end({ state: "pending", subjectId: "", key: "keep" });
    else if (what === "answered") end({ state: "closed", mark: more, key: "keep" });
    else if (what === "refused") {
      end({ state: "closed", mark: markOfRefusal(b.methodOf(name), rest[0]), key: "keep" });
    } else assert.fail(line);
  }
}

function books() {
  let nowMs = 1_000_000;
  let value: PaymentRecord = newRecord();
  const key = recordKey(PAYMENT, externalId);
  const step = (decide: (change: Change, draft: Draft) => void) => {
    nowMs++;
    const draft = new Draft(key, value);
    const change = new Change("token", nowMs, [draft], ages);
    decide(change, draft);
    const place = (n: number) =>
      `${nowMs.toString(16).padStart(12, "0")}${`${n}`.padStart(6, "0")}`;
    const places = change.events.map((_, n) => place(n));
    value = JSON.parse(filledIn(JSON.stringify(draft.value), "token", places, nowMs));
  };
  const intents = () =>
    value.calls.map((call) => intentOfCall({ kind: PAYMENT, externalId }, call));
  const flags = () => outcomeFlags(value);
  return {
    begin(id: string, method: MoneyMethod) {
      step(() => {
        const call = newCall({ id, method, leaseMs: 60_000 }, nowMs);
        value.calls.push({ ...call, after: value.last });
      });
    },
    methodOf: (id: string) => intents().find((one) => one.id === id)?.method as MoneyMethod,
    end: (id: string, ending: Ending) =>
      step((change, draft) => conclude(change, draft, id, ending)),
    giveUp: (id: string) => step((change, draft) => giveUpCall(change, draft, id)),
    tell(paymentId: string, status: string, words: readonly string[]) {
      const [of = "payment"] = words.filter((word) => /^[a-z]+$/.test(word));
      const operation = PaymentOperation[of.toUpperCase() as keyof typeof PaymentOperation];
      const [operationId = ""] = words.filter((word) => /^o\d/.test(word));
      const [amount] = words.filter((word) => /^\d/.test(word));
      const details = {
        ...{ paymentId, operationId, currency: "UAH", ...(amount && { amount }) },
        status: PaymentStatus[status.toUpperCase() as keyof typeof PaymentStatus],
      };
      const payment = create(PaymentSchema, { externalId, operation, details });
      const entry = paymentEntry(payment, { source: EventSource.CALLBACK });
      assert.ok(entry);
      step((change, draft) => void addEntry(change, draft, entry));
    },
    saidPaid(paymentId?: string) {
      const said = { code: "transaction_already_paid", ...(paymentId && { paymentId }) };
      step((change, draft) => settleAsPaid(change, draft, said));
    },
    async flags() {
      const { outcomeUnknown, needsOperator } = flags();
      return [outcomeUnknown && "unknown", needsOperator && "operator"].filter(Boolean).join(" ");
    },
    async state() {
      return paymentState(value, flags().outcomeUnknown);
    },
    async evidenceOf(id: string | undefined) {
      const call = value.calls.find((one) => one.id === id);
      const evidence = call && evidenceOf(call, value);
      return evidence ? `${evidence.mark}${evidence.state === "pending" ? " goes on" : ""}` : "";
    },
    settle(): string {
      step((change, draft) => void settleCalls(change, draft, true));
      return intents()
        .map(({ id, state }) => `${id} ${state}`)
        .join(", ");
    },
  };
}

const takenBack = "a lost; p1 success 10.00; b lost; b? ! CreatePayment; p1 success";
const another = "a runs recurrent; p1 success recurrent";
const confirmed = "x runs confirm; x answered confirm o1";
const aConfirmation = "p1 success confirm o2; a? confirm o2";

/** By what they show. */
const stories: Readonly<Record<string, string | readonly string[]>> = {
  "a payment that began after the call is evidence for it":
    "a lost; a?; p1 pending; a? p1 goes on; p1 failure; a? p1",
  // Before it is sent, p1 may be taken back.
  "a call within its lease, which may be sent yet, is settled by what it made alone":
    "p1 success; a runs; open a running; p2 success; open ",
  // Of what is taken back whole the service may have taken another payment.
  "a success settles all calls; if it is taken back whole, calls that began after it are open": [
    `${takenBack} cancel o1; a? p1; b?; open b unknown; p2 success 10.00; open `,
    `${takenBack} refund o1 10.00; a? p1; b?; open b unknown; p2 success 10.00; open `,
    `${takenBack} refund o1 9.99; a? p1; b? ! CreatePayment; open `,
  ],
  // It arrived once the payment was taken back, before the gateway knew of that.
  "a call that a success settled may be any later attempt": [
    "p0 success; a lost; open ; p0 success cancel; b lost; p1 pending; b?; p2 pending; b?; p1 failure; b? p2 goes on",
    "p0 success; a lost; open ; p0 success cancel; b lost; p1 pending; p1 failure; b?; p2 failure; b? p2",
    "p0 success; a lost; open ; p0 success cancel; b lost; p1 pending; p1 success; open ",
    "p0 success; a lost; open ; b runs; p0 success cancel; p1 success; p1 success cancel; b?; open b running; state UNKNOWN",
  ],
  "an already-paid answer that may be about a success taken back earlier settles no call": [
    "p1 success; p1 success cancel; a lost; said paid; open a unknown; state UNKNOWN",
    "p1 success; p1 success cancel; a lost; said paid p1; open a unknown; state UNKNOWN",
    "p1 pending; p1 success cancel; a lost; said paid; open a unknown; state UNKNOWN",
    "p1 pending; p1 success refund o1; a lost; said paid p1; open a unknown; state UNKNOWN",
    "p1 pending; a lost; said paid; open a unknown; p1 success; open ; p1 success cancel; state CANCELLED",
    "p1 success; p1 success cancel; a lost; said paid p2; open ; state PAID",
  ],
  "a late failure of an earlier, answered attempt is no evidence for this call":
    "x runs; x refused p1; a lost; p1 failure; a?; p2 failure; a? p2",
  "a failure is no evidence if it may be that of a refusal without a payment_id, but two are":
    "x runs; x refused; a lost; p1 failure; a?; p2 failure; a? p2",
  // The callback that it is pending may come late, too.
  "nor is a pending payment evidence until as many failures are known": [
    "x runs; x refused; a lost; p1 pending; a?; p1 failure; a?; p2 failure; a? p2",
    "x runs; x refused; a lost; p1 pending; p2 pending; a?; p1 failure; a? p2 goes on",
    "x runs; x refused; a lost; p1 pending; a?; p2 failure; a? p1 goes on; p1 failure; a? p2",
  ],
  "after a refusal without a payment_id whose failure is known, a pending payment is evidence":
    "x runs; x refused; a lost; p1 failure; p2 pending; a? p2 goes on",
  "a refusal without a payment_id accounts for one failure, also if that came before the call":
    "x runs; x refused; p1 failure; a lost; p2 failure; a? p2",
  "the failure of a payment that began before the call is no evidence for the call":
    "p0 pending; a lost; p0 failure; a?",
  "the success of a payment settles every CreatePayment, whichever call made it":
    "p0 pending; a lost; p0 success; a? ! CreatePayment",
  // p1 stands, and is a's; p2 may be b's.
  "a call that another one's success settled may fail late, which is no evidence for the next call":
    "a lost; p1 success; open ; b lost; open ; p1 success cancel; c lost; p2 failure; open c unknown; p3 success; open ",
  "a payment that a call without a known payment may have made is told apart by its operation": [
    "x runs confirm; x refused; a lost; p1 failure o1; open ",
    "x runs; x refused; a lost confirm; p1 failure confirm o1; open ",
    "x runs; x refused; a lost recurrent; p1 failure o1; open a unknown",
    "x runs recurrent; x refused; a lost; p1 failure o1; open a unknown",
    "x runs confirm; x refused; a lost confirm; p1 failure confirm o1; open a unknown",
  ],
  // The one that runs will tell by its answer, or has told.
  "a payment of another call, running or answered, is no evidence for this call": [
    "x runs",
    "a lost",
  ]
    .map((first) =>
      [first, first === "x runs" ? "a lost" : "x runs"].map((one) => `${one} recurrent`),
    )
    .map(
      (begun) =>
        `${begun.join("; ")}; p1 success recurrent; a?; x answered p1; a?; p2 success recurrent; a? p2`,
    ),
  // A call that is not known yet may have failed: its answer is still to come.
  "a running call ends with the success that it made, and not with a failure": [
    "a runs recurrent; p1 pending recurrent; open a running; p1 success recurrent; open ; a unknown; open ",
    "a runs recurrent; p1 pending recurrent; open a running; p1 failure recurrent; open a running; a unknown; open ",
  ],
  // One of two is its own. The first confirmation's answer named no operation.
  "a running call does not end with what another call may have made": [
    `x runs recurrent; x vague; ${another}; open x pending, a running; p2 success recurrent; open `,
    `x lost recurrent; x given up; ${another}; open x unknown, a running; p2 success recurrent; open `,
    `x runs recurrent; ${another}; open x running, a running; p2 success recurrent; open `,
    "x runs confirm; x answered confirm p1; a runs confirm; p1 success confirm o1; open a running",
  ],
  "a call takes a payment that goes on before one that failed":
    "a lost; p1 failure; p2 pending; a? p2 goes on",
  "a call that was given up claims no payment before the next call":
    "a lost; a given up; b lost; p1 pending; b? p1 goes on",
  "a failure ends a lost call, though a later one that was given up may have made it":
    "a lost; b lost; b given up; p1 failure; a? p1",
  "no operator has to look once the events show what became of a call":
    "a lost; flags unknown; a given up; flags unknown operator; p1 success; flags ",
  "one payment settles only one of two lost calls, and the other stays unknown, at each look":
    "a lost recurrent; b lost recurrent; p1 success recurrent; open b unknown; open b unknown; p2 failure recurrent; open ",
  "a pending payment makes only the first of two lost calls pending":
    "b lost recurrent; a lost recurrent; p1 pending recurrent; open b pending, a unknown; p1 success recurrent; open a unknown",
  "confirmations of one payment are distinguished by their operation_id": [
    `${confirmed}; p1 failure confirm o1; a lost confirm; a?; ${aConfirmation}`,
    `${confirmed}; a lost confirm; p1 failure confirm o1; a?; ${aConfirmation}`,
  ],
  "what a confirmation made is its evidence, though one without an operation_id was declined before it":
    "p1 failure confirm; a lost confirm; a?; p1 success confirm o2; a? confirm o2; open ",
  "a confirmation that goes on is not over because an earlier one of its payment is":
    "p1 success confirm o1; a lost confirm; p1 pending confirm o2; open a pending; p1 success confirm o2; open ",
  "a call whose answer named no payment continues as the payment that arrives":
    "a runs; a vague; a?; p1 pending; open a pending; p1 failure; open ",
  "a payment that is said to be paid counts once, as its callback names it":
    "a lost; said paid; open ; state PAID; p1 success payment o1 10.00; p1 success refund o2 10.00; state REFUNDED",
  "a failure that may be that of either of two lost calls ends neither, until one is answered":
    "a lost; b lost; p2 failure; open a unknown, b unknown; state UNKNOWN; b answered p2; open a unknown; p1 failure; open ",
};

describe("what is known of a payment as evidence:", () => {
  for (const [name, told] of Object.entries(stories)) {
    it(name, async () => {
      for (const story of [told].flat()) await play(story);
    });
  }
});
