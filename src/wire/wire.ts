import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { UnrecognizedValue } from "../gen/payments/v1/unrecognized_value_pb.ts";
import { isWhole, noteUnreadFields, unrecognizedValue } from "../model/unrecognized.ts";
import { excessOfJson } from "../net/bounded-json.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { isJsonObject } from "../net/json.ts";
import { type DecodeOptions, readMessage, readMessages, Walk, type WireFault } from "./decode.ts";
import { writerOf } from "./encode.ts";

export type { DecodeOptions, WireFault } from "./decode.ts";

/** A body that is not JSON, not a JSON object, or beyond the limits. Its message never contains a part of the body. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/**
 * Reads a JSON body of the REST interface into a message. Null is absent, unknown members are
 * ignored, a number in a text field keeps its digits, card numbers are masked but in secret fields
 * and those that the proto marks as exact. A field whose value is of an unexpected type stays
 * unset, is reported to `onFault`, and is noted as one of the message's unread fields. A value
 * outside its enum is reported too, and kept in `unrecognized` if the message has that field.
 * @throws WireError when the text is not a JSON object.
 */
export function decode<Desc extends DescMessage>(
  schema: Desc,
  text: string,
  options?: DecodeOptions,
): MessageShape<Desc> {
  const json = parse(text);
  if (!isJsonObject(json)) throw new WireError("the body is JSON, but not an object");
  const unread: string[] = [];
  const unrecognized: UnrecognizedValue[] = [];
  const onFault = (fault: WireFault) => {
    const { path, value } = fault;
    if (value !== undefined) unrecognized.push(unrecognizedValue(path, value));
    if (value === undefined || !isWhole(value)) unread.push(path);
    options?.onFault?.(fault);
  };
  const message = readMessage(schema, json, new Walk(text, { ...options, onFault }));
  if (unread.length > 0) noteUnreadFields(message, unread);
  if (unrecognized.length > 0 && "unrecognized" in message) message.unrecognized = unrecognized;
  return message as MessageShape<Desc>;
}

/**
 * Reads a body that is one object or a list of them: the answer of wallet/find, which the spec
 * shows as one item. Null is an empty list. An element that is not an object, or one of unknown
 * shape, is left out and reported as the fault `[]`; a fault within an element is reported with a
 * path like `[].card.mask`.
 * @throws WireError when the text is none of these.
 */
export function decodeList<Desc extends DescMessage>(
  schema: Desc,
  text: string,
  options?: DecodeOptions,
): MessageShape<Desc>[] {
  const json = parse(text);
  if (json === null) return [];
  const walk = new Walk(text, options);
  if (Array.isArray(json)) return readMessages(schema, json, walk) as MessageShape<Desc>[];
  if (!isJsonObject(json)) throw new WireError("the body is JSON, but neither object nor list");
  return readMessages(schema, [json], walk) as MessageShape<Desc>[];
}

/**
 * Writes a message as a JSON body of the REST interface: absent fields are left out, decimals of
 * number fields are written digit for digit.
 * @throws RangeError naming the field (never its value) when the wire cannot carry it.
 */
export function encode<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): string {
  return writerOf(schema)(message);
}

function parse(text: string): unknown {
  const excess = excessOfJson(text, intakeLimits.answerValues);
  if (excess) throw new WireError(`the body ${excess}`);
  try {
    return JSON.parse(text);
  } catch {
    // Drop the parser's own error: its message quotes the text.
    throw new WireError(text.trim() === "" ? "the body is empty" : "the body is not JSON");
  }
}
