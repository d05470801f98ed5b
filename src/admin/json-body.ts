import { type Body, receiveWhole } from "../net/intake.ts";
import { Refused } from "./operator.ts";

/** Far more than the console sends. */
const maxBytes = 16 * 1024;

/**
 * Reads a small JSON body. Other content types are refused: a page of another origin can make a
 * browser send forms and plain text without a preflight request.
 * @throws Refused
 */
export async function readJson(body: Body, contentType: string | undefined): Promise<unknown> {
  requireJson(contentType);
  const tooLarge = () => new Refused(413, "the body is too large");
  const bytes = await receiveWhole(body, { maxBytes }, tooLarge);
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new Refused(400, "the body is not JSON");
  }
}

/** @throws Refused */
export function requireJson(contentType: string | undefined): void {
  if (/^application\/json *(?:;|$)/i.test(contentType ?? "")) return;
  throw new Refused(415, "send content-type: application/json");
}
