import { isUtf8 } from "node:buffer";
import { redact } from "../secrets/redact.ts";
import { printable } from "./terminal.ts";

/**
 * A callback's body as a terminal may show it: without secrets and card numbers, and with controls
 * escaped. What is not text is only told of.
 */
export function maskedBody(body: Uint8Array): string {
  if (!isUtf8(body)) return `[${body.byteLength} bytes that are not UTF-8]`;
  return redact(new TextDecoder().decode(body)).replace(/[^\n]+/g, printable);
}
