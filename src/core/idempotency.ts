import { GatewayError } from "../errors.ts";
import type { Call } from "./core.ts";
import { invalidFields } from "./validate.ts";

/**
 * The key of a call, from its header or its input. Undefined for a call without one.
 * @throws GatewayError INVALID_ARGUMENT for a text that is not a key, and for two different keys
 */
export function keyOf(
  call: Pick<Call, "idempotencyKey" | "inputIdempotencyKey">,
): string | undefined {
  const ofHeader = readKey(call.idempotencyKey, headerName);
  const ofInput = readKey(call.inputIdempotencyKey, inputName);
  if (ofHeader !== undefined && ofInput !== undefined && ofHeader !== ofInput) {
    const message = "is not the key of the Idempotency-Key header";
    throw invalidFields([{ path: inputName, message }]);
  }
  return ofInput ?? ofHeader;
}

const headerName = "idempotency-key";
/** Only GraphQL has it, so it has no spelling of the proto. */
const inputName = "idempotencyKey";

/**
 * Reads a key: its plain text, or the text between the quotes of the IETF draft's form, a String of
 * RFC 8941.
 */
function readKey(given: string | undefined, path: string): string | undefined {
  if (given === undefined) return undefined;
  const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(given)?.[1];
  if (quoted === undefined) {
    if (/^[\x21-\x7e]{1,255}$/.test(given)) return given;
  } else {
    const key = quoted.replace(/\\(.)/g, "$1");
    if (key.length >= 1 && key.length <= 255) return key;
  }
  throw invalidFields([{ path, message: "must be 1 to 255 visible ASCII characters" }]);
}

export function keyReused(): GatewayError {
  return new GatewayError("ALREADY_EXISTS", "the Idempotency-Key was used for another request", {
    reason: "IDEMPOTENCY_KEY_REUSED",
  });
}
