import { Code, ConnectError } from "@connectrpc/connect";
import { excessOfJson } from "../net/bounded-json.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Decodes the JSON of a request, whose bytes must be UTF-8 (RFC 8259, section 8.1). If other bytes
 * became replacement characters, the call would be for another `external_id` than the caller sent.
 * Refuses a text that would hold more than the limits, before it is parsed.
 */
const strictUtf8 = {
  decode(bytes?: Uint8Array): string {
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      throw new ConnectError("the request is not UTF-8", Code.InvalidArgument);
    }
    const excess = excessOfJson(text);
    if (excess) throw new ConnectError(`the request ${excess}`, Code.InvalidArgument);
    return text;
  },
};

/** How messages are read, by Connect too. */
export const codecOptions = {
  // Strictly: to ignore a misspelt `confirm` would move money.
  jsonOptions: { ignoreUnknownFields: false, textDecoder: strictUtf8 },
  binaryOptions: { readUnknownFields: false },
};
