import { isUtf8 } from "node:buffer";
import type { EventLog, KeptLetter } from "../events/log.ts";
import { kinds } from "../kinds.ts";
import { redact } from "../secrets/redact.ts";
import type { Letter, LetterBody, Letters } from "./console-api.ts";

/** Dead letters as the console lists them: the newest ones, or those before a place, without bodies. */
export async function lettersOf(log: EventLog, account: string, behind?: string): Promise<Letters> {
  const total = await log.countDeadLetters(account);
  const letters: Letter[] = [];
  let next: string | undefined;
  let last: string | undefined;
  for await (const letter of log.deadLetters(account, { newestFirst: true, behind })) {
    if (letters.length === maxListed) {
      next = last;
      break;
    }
    letters.push(view(letter));
    last = letter.place;
  }
  return { total, letters, ...(next !== undefined && { next }) };
}

/** One of them with its body, masked: nobody understood it, so nobody knows where its secrets are. */
export async function letterOf(
  log: EventLog,
  account: string,
  id: string,
): Promise<LetterBody | undefined> {
  const letter = await log.deadLetter(account, id);
  if (!letter) return undefined;
  if (letter.body === undefined) return view(letter);
  const body = Buffer.from(letter.body, "base64");
  if (!isUtf8(body)) return view(letter);
  const text = redact(body.toString());
  return {
    ...view(letter),
    text: text.length > maxTextLength ? `${text.slice(0, maxTextLength)}\n…` : text,
  };
}

const maxListed = 50;
const maxTextLength = 64 * 1024;

function view({ id, kind, reason, receivedAtMs, body }: KeptLetter): Letter {
  return {
    id,
    resource: kinds[kind].resource,
    reason,
    receivedAtMs,
    ...(body !== undefined && { bytes: Buffer.byteLength(body, "base64") }),
  };
}
