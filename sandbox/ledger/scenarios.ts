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

/** The scenario of every expired card. */
const expiredCard: Scenario = {
  ...plain,
  name: "card_expired",
  outcome: "card_expired",
  summary: "Declined",
};

/** All magic values; `docs/sandbox.md` lists them for people. */
export const magicValues: readonly MagicValue[] = [
  { cards: ["4111111111111111", "5555555555554444"], scenario: success },
  {
    cards: ["4000000000003014"],
    scenario: { ...plain, name: "3ds", challenge: true, summary: "3DS page: Approve succeeds" },
  },
  {
    cards: ["4000000000003022"],
    scenario: {
      ...plain,
      name: "3ds_failed",
      challenge: true,
      outcome: "wrong_cavv",
      summary: "3DS page: Approve fails all the same",
    },
  },
  {
    cards: ["4000000000000614"],
    cents: "61",
    scenario: {
      ...plain,
      name: "insufficient_funds",
      outcome: "insufficient_funds",
      summary: "Declined",
    },
  },
  {
    cards: ["4000000000000622"],
    cents: "62",
    scenario: expiredCard,
  },
  {
    cards: ["4000000000000630"],
    cents: "63",
    scenario: { ...plain, name: "wrong_cvv", outcome: "wrong_cvv", summary: "Declined" },
  },
  {
    cards: ["4000000000000648"],
    cents: "64",
    scenario: {
      ...plain,
      name: "anti_fraud_check",
      outcome: "anti_fraud_check",
      summary: "Declined",
    },
  },
  {
    cards: ["4000000000000655"],
    cents: "65",
    scenario: {
      ...plain,
      name: "delayed",
      settles: "later",
      summary: "Pending, succeeds some seconds later",
    },
  },
  {
    cards: ["4000000000000663"],
    cents: "66",
    scenario: {
      ...plain,
      name: "delayed_decline",
      settles: "later",
      outcome: "transaction_declined",
      summary: "Pending, declined some seconds later",
    },
  },
  {
    cards: ["4000000000000671"],
    cents: "67",
    scenario: {
      ...plain,
      name: "duplicate_callbacks",
      callbacks: "three times",
      summary: "Success; the same callback three times",
    },
  },
  {
    cards: ["4000000000000689"],
    cents: "68",
    scenario: {
      ...plain,
      name: "reordered_callbacks",
      settles: "later",
      callbacks: "reordered",
      summary: "Pending; the callback of the success comes first, an earlier pending one after it",
    },
  },
  {
    cards: ["4000000000000697"],
    cents: "69",
    scenario: {
      ...plain,
      name: "lost_callback",
      settles: "later",
      callbacks: "never",
      summary: "Pending, succeeds some seconds later; no callback unless asked for",
    },
  },
  {
    cards: ["4000000000000762"],
    cents: "76",
    scenario: {
      ...plain,
      name: "answer_lost",
      answer: "lost",
      summary: "Success, but the connection breaks instead of the answer; the callback comes",
    },
  },
  {
    cards: ["4000000000000713"],
    cents: "71",
    scenario: {
      ...plain,
      name: "answer_and_callback_lost",
      answer: "lost",
      callbacks: "never",
      summary: "Success, but neither answer nor callback comes unless asked for",
    },
  },
  {
    cards: ["4000000000000721"],
    cents: "72",
    scenario: {
      ...plain,
      name: "html_500",
      answer: "html_500",
      summary: "HTTP 500 with an HTML page; nothing was charged",
    },
  },
  {
    cards: ["4000000000000739"],
    cents: "73",
    scenario: {
      ...plain,
      name: "too_many_requests",
      answer: "too_many_requests",
      summary: "HTTP 429 `too_many_requests`, reset in 1 s; nothing was charged",
    },
  },
  {
    cards: ["4000000000000747"],
    cents: "74",
    scenario: {
      ...plain,
      name: "slow_answer",
      answer: "slow",
      summary: "Success; the answer takes 10 s, the callback comes before it",
    },
  },
  {
    cards: ["4000000000000754"],
    cents: "75",
    scenario: {
      ...plain,
      name: "internal_error",
      answer: "internal_error",
      summary: "HTTP 500 with the Error object `internal_error`; nothing was charged",
    },
  },
  {
    cards: ["4000000000000770"],
    cents: "77",
    scenario: {
      ...plain,
      name: "declined_in_payment",
      outcome: "transaction_declined",
      declines: "payment",
      summary: "Declined by a normal answer: payment data with status `failure`, no Error object",
    },
  },
  {
    cards: ["4000000000000788"],
    cents: "78",
    scenario: {
      ...plain,
      name: "init",
      begins: "init",
      settles: "later",
      summary: "Status `init`, then pending, then success, each with its callback",
    },
  },
  {
    cards: ["4000000000000796"],
    cents: "79",
    scenario: {
      ...plain,
      name: "lookup",
      lookup: true,
      summary: "Success, followed by the callback of an operation `lookup`",
    },
  },
  {
    cards: ["4000000000000804"],
    cents: "80",
    scenario: {
      ...plain,
      name: "receipt_pending",
      receipt: [1002, 1001],
      summary: "Success; its fiscal receipt is Pending, and Success by a further callback",
    },
  },
  {
    cards: ["4000000000000812"],
    cents: "81",
    scenario: {
      ...plain,
      name: "receipt_failed",
      receipt: [1002, 2001],
      summary: "Success; its fiscal receipt is Pending, and Failed (2001) by a further callback",
    },
  },
  {
    cards: ["4000000000000820"],
    cents: "82",
    scenario: {
      ...plain,
      name: "batch",
      batch: true,
      summary: "Success, as part of a batch: it has a `batch_external_id`",
    },
  },
  {
    cards: ["4000000000000838"],
    cents: "83",
    scenario: {
      ...plain,
      name: "silence",
      answer: "lost",
      callbacks: "never",
      resends: false,
      summary: "Success, but neither answer nor callback comes, not even when asked for",
    },
  },
];

/** What is needed of a card to choose its scenario. */
export interface PayingCard {
  readonly number: string;
  readonly expiresAt: Date;
}

/** Chosen by an expired card, else by a listed card number, else by the cents, else success. */
export function scenarioFor(amount: string, card?: PayingCard): Scenario {
  if (card && card.expiresAt.getTime() < Date.now()) return expiredCard;
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
