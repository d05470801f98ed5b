import {
  type DescMessage,
  fromBinary,
  fromJson,
  fromJsonString,
  type Message,
} from "@bufbuild/protobuf";
import { oncePer } from "../collections/once-per.ts";
import { excessOfJson } from "../net/bounded-json.ts";
import { excessOfBinary } from "./bounded-binary.ts";
import { errorOfJson, invalid, isInstant, refuseViolation } from "./decode-errors.ts";

/**
 * Decodes a request, in binary or proto JSON. Refuses one that would hold more than the limits
 * before anything of it is made.
 * @throws GatewayError INVALID_ARGUMENT, which names no value: it may be a card number
 */
export function decodeRequest(type: DescMessage, bytes: Uint8Array, isJson: boolean): Message {
  if (isJson) return decodeJson(type, textOf(bytes));
  const excess = excessOfBinary(type, bytes);
  if (excess) throw invalid(`the request ${excess}`);
  try {
    return fromBinary(type, bytes, { readUnknownFields: false });
  } catch {
    throw invalid("the request is not a message of its type");
  }
}

/** Reads JSON strictly: to ignore a misspelt `confirm` would move money. */
function decodeJson(type: DescMessage, text: string): Message {
  const excess = excessOfJson(text);
  if (excess) throw invalid(`the request ${excess}`);
  let message: Message;
  try {
    message = readJson(type, text);
  } catch (error) {
    throw errorOfJson(type, text, String(error));
  }
  if (instantsOf(type).length > 0) refuseViolation(type, text);
  return message;
}

const instantsOf = oncePer((type: DescMessage) => type.fields.filter(isInstant));

function readJson(type: DescMessage, text: string): Message {
  try {
    return fromJsonString(type, text);
  } catch (error) {
    // Null is absent, but protobuf-es counts one as a member of a oneof.
    if (!String(error).includes(": oneof set multiple times")) throw error;
    return fromJson(
      type,
      JSON.parse(text, (_key, value) => value ?? undefined),
    );
  }
}

/**
 * The text of a request's JSON, whose bytes must be UTF-8 (RFC 8259, section 8.1). If other bytes
 * became replacement characters, the call would be for another `external_id` than the caller sent.
 */
function textOf(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw invalid("the request is not UTF-8");
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });
