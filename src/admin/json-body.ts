import type { IncomingMessage } from "node:http";
import { Refused } from "./operator.ts";

/** Far more than the console sends. */
const maxBytes = 16 * 1024;

/**
 * Reads a small JSON body. Other content types are refused: a page of another origin can make a
 * browser send forms and plain text without a preflight request.
 * @throws Refused
 */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  requireJson(request.headers["content-type"]);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new Refused(413, "the body is too large");
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new Refused(400, "the body is not JSON");
  }
}

/** @throws Refused */
export function requireJson(contentType: string | undefined): void {
  if (/^application\/json *(?:;|$)/i.test(contentType ?? "")) return;
  throw new Refused(415, "send content-type: application/json");
}
