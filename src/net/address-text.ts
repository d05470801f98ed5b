import { isUtf8 } from "node:buffer";

/**
 * Whether a request's URL holds nothing but percent-encoded UTF-8. Other bytes would be decoded as
 * replacement characters, or as other letters than the client sent.
 */
export function isUtf8Address(url: string): boolean {
  if (!suspicious.test(url)) return true;
  if (notAscii.test(url)) return false;
  const decoded = url.replace(/%([\da-f]{2})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return isUtf8(Buffer.from(decoded, "latin1"));
}

const notAscii = /[^ -~]/;
/** Bytes that are not ASCII, encoded or not. */
const suspicious = /[^ -~]|%[89a-f]/i;

/** A text without its percent-encoding; undefined if the encoding is wrong or not of UTF-8. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
