import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { GatewayError, type GatewayErrorDetails } from "../errors.ts";
import { UpstreamErrorSchema } from "../gen/payments/v1/error_pb.ts";
import type { Seal } from "../secrets/seal.ts";

/** How the first call of an Idempotency-Key ended: with an answer, or with an error. */
export type Outcome<Result> = { readonly answer: Result } | { readonly error: GatewayError };

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
