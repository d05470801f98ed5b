import { createHash, timingSafeEqual } from "node:crypto";

/** The header with a callback's signature. */
export const signatureHeader = "x-service-signature";

/**
 * Whether the payments service signed a callback's body: its header is
 * base64url(SHA-1(password + base64url(body) + password)), padding kept in both. For services that
 * receive callbacks themselves, or from `payments-gateway listen --forward-to`.
 *
 * Pass the raw bytes of the body as received, not parsed JSON written again. Compares in constant
 * time, and never throws for any body or header.
 *
 * @param passwords the merchant's password, and earlier ones during a rotation
 */
export function verifyCallback(
  body: Uint8Array,
  header: string | readonly string[] | null | undefined,
  passwords: string | readonly string[],
): boolean {
  // Reject a repeated header: it is not clear which signature counts.
  if (typeof header !== "string") return false;
  const given = Buffer.from(header);
  let verified = false;
  for (const password of typeof passwords === "string" ? [passwords] : passwords) {
    // Anybody could sign with an empty password.
    if (password === "") continue;
    const expected = Buffer.from(signCallback(body, password));
    if (given.length === expected.length && timingSafeEqual(given, expected)) verified = true;
  }
  return verified;
}

/** The signature of a callback's body, to test a receiver. */
export function signCallback(body: Uint8Array, password: string): string {
  const digest = createHash("sha1").update(password).update(base64url(body)).update(password);
  return base64url(digest.digest());
}

/** Node's base64url omits the padding. */
function base64url(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}
