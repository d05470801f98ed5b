import { Code, ConnectError } from "@connectrpc/connect";

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads the JSON of a request, whose bytes must be UTF-8 (RFC 8259, section 8.1): with replacement
 * characters for what is not, a call would be made for another `external_id` than was sent.
 */
export const strictUtf8 = {
  decode(bytes?: Uint8Array): string {
    try {
      return decoder.decode(bytes);
    } catch {
      throw new ConnectError("the request is not UTF-8", Code.InvalidArgument);
    }
  },
};
