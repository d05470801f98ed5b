import { isUtf8 } from "node:buffer";
import * as z from "zod";
import { parseCallback } from "../callbacks/parse-callback.ts";
import type { StoredDeadLetter } from "../ledger/dead-letters.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { kinds } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { Observations, Report } from "../report.ts";
import { redact } from "../secrets/redact.ts";
import type { DeadLetterDetails, DeadLetterPage, DeadLetterView } from "./console-api.ts";
import {
  type AdminAnswer,
  type AdminRequest,
  accountOf,
  json,
  Refused,
  type Routes,
  readQuery,
} from "./operator.ts";

const maxListed = 1_000;

const listQuery = z.strictObject({
  account: z.string().optional(),
  limit: z
    .string()
    .regex(/^\d{1,9}$/, "is not a whole number")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= maxListed, `accepted is 1 to ${maxListed}`)
    .default(100),
  order: z.enum(["newest", "oldest"], "accepted is newest or oldest").default("newest"),
  /** `next_cursor` of the page before. */
  cursor: z.string().optional(),
});

/** What operators can do about callbacks that were not understood, of the accounts that they may see. */
export function deadLetterRoutes(ledger: Ledger, report: Report, payoutEnds?: PayoutEnds): Routes {
  const { letters } = ledger;

  async function list({ operator, query }: AdminRequest): Promise<DeadLetterPage> {
    const { account: asked, limit, order, cursor: behind } = readQuery(listQuery, query);
    const account = accountOf(operator, asked ?? null);
    const total = await letters.countDeadLetters(account);
    const found: StoredDeadLetter[] = [];
    const newestFirst = order === "newest";
    for await (const letter of letters.deadLetters(account, { newestFirst, behind })) {
      if (found.push(letter) > limit) break;
    }
    const page = found.slice(0, limit);
    return {
      dead_letters: page.map((letter) => viewOf(account, letter)),
      total,
      next_cursor: found.length > limit ? page.at(-1)?.place : undefined,
    };
  }

  async function find({ operator, variables }: AdminRequest) {
    const [account = "", id = ""] = variables;
    const isTheirs = operator.accounts.includes(account);
    const letter = isTheirs ? await letters.deadLetter(account, id) : undefined;
    if (!letter) throw gone();
    return { letter, view: viewOf(account, letter) };
  }

  /** The body as it was received may hold card data. */
  async function read(asked: AdminRequest): Promise<DeadLetterDetails> {
    const { letter, view } = await find(asked);
    const body = asked.query.get("raw") === "false" ? undefined : letter.body;
    if (body !== undefined) note(asked, "read as it came", view);
    return { ...view, text: textOf(letter), body };
  }

  /**
   * Parses a letter again. If it is understood now, it becomes an event and leaves the list. Its
   * signature was checked when it arrived.
   */
  async function replayed(asked: AdminRequest): Promise<AdminAnswer> {
    const { letter, view } = await find(asked);
    const { kind, body } = letter;
    // It was encrypted with a password that is no longer accepted.
    if (body === undefined) return { status: 422, body: { outcome: "locked" } };
    const { entry } = parseCallback(kind, Buffer.from(body, "base64"), { payoutEnds });
    if (!entry) return { status: 422, body: { outcome: "not_understood" } };
    const { account, id } = view;
    const { outcome } = await ledger.append(account, entry);
    await letters.removeDeadLetter(account, id);
    note(asked, "replayed", { account, id, outcome });
    return { status: 200, body: { outcome } };
  }

  /** Deletes a letter for good. */
  async function discard(asked: AdminRequest): Promise<AdminAnswer> {
    const { view } = await find(asked);
    if (!(await letters.removeDeadLetter(view.account, view.id))) throw gone();
    note(asked, "discarded", view);
    return { status: 204 };
  }

  function note({ operator }: AdminRequest, did: Handled["did"], letter: Handled["letter"]): void {
    report("letterHandled", { operator: operator.name, did, letter });
  }

  return {
    "GET /dead-letters": json(list),
    "GET /dead-letters/{account}/{id}": json(read),
    "POST /dead-letters/{account}/{id}/replay": replayed,
    "DELETE /dead-letters/{account}/{id}": discard,
  };
}

type Handled = Observations["letterHandled"];

const gone = () => new Refused(404, "not found");

function viewOf(account: string, letter: StoredDeadLetter): DeadLetterView {
  const { id, kind, reason, body, receivedAtMs } = letter;
  return {
    account,
    id,
    resource: kinds[kind].resource,
    reason,
    receivedAt: new Date(receivedAtMs).toISOString(),
    ...(body === undefined ? { locked: true } : { bytes: Buffer.byteLength(body, "base64") }),
  };
}

/** Masked as plain text: the body was not understood, so its secret fields are not known. */
function textOf({ body }: StoredDeadLetter): string | undefined {
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body, "base64");
  return isUtf8(bytes) ? redact(bytes.toString()) : undefined;
}
