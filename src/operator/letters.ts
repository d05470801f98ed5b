import { isUtf8 } from "node:buffer";
import type { Letter, LetterBody, Letters } from "../admin/console-api.ts";
import type { DeadLetter, EventLog } from "../events/log.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";
import { isSecretName, maskedText } from "./masked-text.ts";

/** Dead letters as the console lists them: the newest ones, without their bodies. */
export async function lettersOf(log: EventLog, account: string): Promise<Letters> {
  const all = await log.deadLetters(account);
  return { total: all.length, letters: all.slice(-mostLetters).reverse().map(view) };
}

/** One of them with its body, masked: nobody understood it, so nobody knows where its secrets are. */
export async function letterOf(
  log: EventLog,
  account: string,
  id: string,
): Promise<LetterBody | undefined> {
  const letter: KeptLetter | undefined = (await log.deadLetters(account)).find(
    (kept) => kept.id === id,
  );
  if (!letter) return undefined;
  if (letter.body === undefined) return view(letter);
  const body = Buffer.from(letter.body, "base64");
  if (!isUtf8(body)) return view(letter);
  const text = maskedText(body.toString(), { isSecretName });
  return { ...view(letter), text: text.length > mostText ? `${text.slice(0, mostText)}\n…` : text };
}

const mostLetters = 200;
const mostText = 64 * 1024;

/** One without its body cannot be opened any more. */
type KeptLetter = Omit<DeadLetter, "body"> & Partial<Pick<DeadLetter, "body">>;

function view({ id, kind, reason, receivedAtMs, body }: KeptLetter): Letter {
  return {
    id,
    resource: kind === EventKind.PAYOUT ? "payouts" : "payments",
    reason,
    receivedAtMs,
    ...(body !== undefined && { bytes: Buffer.byteLength(body, "base64") }),
  };
}
