import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { GatewayError, type GatewayErrorDetails, invalidFields } from "../errors.ts";
import { UpstreamErrorSchema } from "../gen/payments/v1/error_pb.ts";
import type { Seal } from "../secrets/seal.ts";
import type { Call } from "./core.ts";

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

/** Response header of an answer that an earlier call with the same `Idempotency-Key` got. */
export const replayedHeader = "idempotent-replayed";

/** How the first call of an Idempotency-Key ended: with an answer, or with an error. */
type Outcome<Result> = { readonly answer: Result } | { readonly error: GatewayError };

/** Encodes an outcome to be stored under its key, sealed as a whole: answers hold card tokens. */
export function sealOutcome<Desc extends DescMessage>(
  seal: Seal,
  schema: Desc,
  outcome: Outcome<MessageShape<Desc>>,
  keyDigest: string,
): Buffer {
  if ("answer" in outcome) {
    return seal.close(Buffer.concat([isAnswer, toBinary(schema, outcome.answer)]), keyDigest);
  }
  const { code, message, details } = outcome.error;
  const { upstream, ...plain } = details;
  const json = JSON.stringify({
    code,
    message,
    details: plain,
    ...(upstream && { upstream: toJson(UpstreamErrorSchema, upstream) }),
  });
  return seal.close(Buffer.concat([isError, Buffer.from(json)]), keyDigest);
}

/** Reads a stored outcome. Undefined if its sealing password is no longer accepted. */
export function openOutcome<Desc extends DescMessage>(
  seal: Seal,
  schema: Desc,
  sealed: Buffer,
  keyDigest: string,
): Outcome<MessageShape<Desc>> | undefined {
  const stored = seal.open(sealed, keyDigest);
  if (!stored) return undefined;
  const body = stored.subarray(1);
  if (stored[0] === isAnswer[0]) return { answer: fromBinary(schema, body) };
  const { code, message, details, upstream } = JSON.parse(body.toString()) as StoredError;
  const error = new GatewayError(code, message, {
    ...details,
    ...(upstream !== undefined && { upstream: fromJson(UpstreamErrorSchema, upstream) }),
  });
  return { error };
}

const isAnswer = Buffer.from([1]);
const isError = Buffer.from([2]);

interface StoredError extends Pick<GatewayError, "code" | "message"> {
  readonly details: Omit<GatewayErrorDetails, "upstream" | "cause">;
  readonly upstream?: JsonValue;
}
