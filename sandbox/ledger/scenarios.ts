import type { ApiErrorCode } from "../api/api-error.ts";
import type { ReceiptCode } from "./receipts.ts";

/** What happens to an operation with a magic value. */
export interface Scenario {
  readonly name: string;
  /** Description for the table of magic values. */
  readonly summary: string;
  /** How the operation ends: success, or the code of the failure. */
  readonly outcome: "success" | ApiErrorCode;
  /** Whether the customer has to pass a 3DS page first. */
  readonly challenge: boolean;
  /** Status in the first response, if the operation ends later. */
  readonly begins: "init" | "pending";
  /** Whether the operation ends before the response, or later: then a callback reports it. */
  readonly settles: "now" | "later";
  readonly callbacks: "once" | "three times" | "reordered" | "never";
  /** Whether `callback/resend` sends a callback. */
  readonly resends: boolean;
  /** How a call that is declined at once is answered: with an Error object or payment data. */
  readonly declines: "error" | "payment";
  /** Codes of the fiscal receipt, each sent in its own callback; empty without a receipt. */
  readonly receipt: readonly ReceiptCode[];
  /** Whether a `lookup` operation with its own callback follows the success. */
  readonly lookup: boolean;
  /** Whether the payment is part of a batch. */
  readonly batch: boolean;
  readonly answer: "normal" | "slow" | "lost" | "html_500" | "internal_error" | "too_many_requests";
}

/** A scenario and what triggers it. */
export interface MagicValue {
  readonly scenario: Scenario;
  readonly cards: readonly string[];
  /** The two digits after the amount's point. */
  readonly cents?: string;
}

const plain = {
  outcome: "success",
  challenge: false,
  begins: "pending",
  settles: "now",
  callbacks: "once",
  resends: true,
  declines: "error",
  receipt: [],
  lookup: false,
  batch: false,
  answer: "normal",
} as const;

export const success: Scenario = { ...plain, name: "success", summary: "Success at once" };

/** A scenario that a card triggers, and the cents that are the digits before its last one. */
function magic(
  card: string,
  name: string,
  summary: string,
  differs: Partial<Scenario>,
): Required<MagicValue> {
  return {
    cards: [card],
    cents: card.slice(-3, -1),
    scenario: { ...plain, name, summary, ...differs },
  };
}

function declined(card: string, outcome: ApiErrorCode): Required<MagicValue> {
  return magic(card, outcome, "Declined", { outcome });
}

/** One that no cents trigger. */
function byCardAlone(...row: Parameters<typeof magic>): MagicValue {
  const { cents: _, ...value } = magic(...row);
  return value;
}

const expired = declined("4000000000000622", "card_expired");

/** All magic values; `docs/sandbox.md` lists them for people. */
export const magicValues: readonly MagicValue[] = [
  { cards: ["4111111111111111", "5555555555554444"], scenario: success },
  byCardAlone("4000000000003014", "3ds", "3DS page: Approve succeeds", { challenge: true }),
  byCardAlone("4000000000003022", "3ds_failed", "3DS page: Approve fails all the same", {
    challenge: true,
    outcome: "wrong_cavv",
  }),
  declined("4000000000000614", "insufficient_funds"),
  expired,
  declined("4000000000000630", "wrong_cvv"),
  declined("4000000000000648", "anti_fraud_check"),
  magic("4000000000000655", "delayed", "Pending, succeeds some seconds later", {
    settles: "later",
  }),
  magic("4000000000000663", "delayed_decline", "Pending, declined some seconds later", {
    settles: "later",
    outcome: "transaction_declined",
  }),
  magic("4000000000000671", "duplicate_callbacks", "Success; the same callback three times", {
    callbacks: "three times",
  }),
  magic(
    "4000000000000689",
    "reordered_callbacks",
    "Pending; the callback of the success comes first, an earlier pending one after it",
    { settles: "later", callbacks: "reordered" },
  ),
  magic(
    "4000000000000697",
    "lost_callback",
    "Pending, succeeds some seconds later; no callback unless asked for",
    { settles: "later", callbacks: "never" },
  ),
  magic(
    "4000000000000762",
    "answer_lost",
    "Success, but the connection breaks instead of the answer; the callback comes",
    { answer: "lost" },
  ),
  magic(
    "4000000000000713",
    "answer_and_callback_lost",
    "Success, but neither answer nor callback comes unless asked for",
    { answer: "lost", callbacks: "never" },
  ),
  magic("4000000000000721", "html_500", "HTTP 500 with an HTML page; nothing was charged", {
    answer: "html_500",
  }),
  magic(
    "4000000000000739",
    "too_many_requests",
    "HTTP 429 `too_many_requests`, reset in 1 s; nothing was charged",
    { answer: "too_many_requests" },
  ),
  magic(
    "4000000000000747",
    "slow_answer",
    "Success; the answer takes 10 s, the callback comes before it",
    { answer: "slow" },
  ),
  magic(
    "4000000000000754",
    "internal_error",
    "HTTP 500 with the Error object `internal_error`; nothing was charged",
    { answer: "internal_error" },
  ),
  magic(
    "4000000000000770",
    "declined_in_payment",
    "Declined by a normal answer: payment data with status `failure`, no Error object",
    { outcome: "transaction_declined", declines: "payment" },
  ),
  magic(
    "4000000000000788",
    "init",
    "Status `init`, then pending, then success, each with its callback",
    { begins: "init", settles: "later" },
  ),
  magic(
    "4000000000000796",
    "lookup",
    "Success, followed by the callback of an operation `lookup`",
    { lookup: true },
  ),
  magic(
    "4000000000000804",
    "receipt_pending",
    "Success; its fiscal receipt is Pending, and Success by a further callback",
    { receipt: [1002, 1001] },
  ),
  magic(
    "4000000000000812",
    "receipt_failed",
    "Success; its fiscal receipt is Pending, and Failed (2001) by a further callback",
    { receipt: [1002, 2001] },
  ),
  magic("4000000000000820", "batch", "Success, as part of a batch: it has a `batch_external_id`", {
    batch: true,
  }),
  magic(
    "4000000000000838",
    "silence",
    "Success, but neither answer nor callback comes, not even when asked for",
    { answer: "lost", callbacks: "never", resends: false },
  ),
];

/** What is needed of a card to choose its scenario. */
export interface PayingCard {
  readonly number: string;
  readonly expiresAt: Date;
}

/** Chosen by an expired card, else by a listed card number, else by the cents, else success. */
export function scenarioFor(amount: string, card?: PayingCard): Scenario {
  if (card && card.expiresAt.getTime() < Date.now()) return expired.scenario;
  return byCard.get(card?.number ?? "") ?? byCents.get(centsOf(amount)) ?? success;
}

/** The numbers of all cards in the table. */
export const listedCards: ReadonlySet<string> = new Set(magicValues.flatMap(({ cards }) => cards));

const byCard = new Map(
  magicValues.flatMap(({ cards, scenario }) => cards.map((card) => [card, scenario] as const)),
);

const byCents = new Map(
  magicValues.flatMap(({ cents, scenario }) =>
    cents === undefined ? [] : [[cents, scenario] as const],
  ),
);

/** The cents as two digits: 12.8 and 12.80 are the same JSON number. */
function centsOf(amount: string): string {
  return /\.(\d\d?)0*$/.exec(amount)?.[1]?.padEnd(2, "0") ?? "";
}
