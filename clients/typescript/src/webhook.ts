import { createHash, timingSafeEqual } from "node:crypto";

/** The header of a signed callback. */
export const signatureHeader = "x-service-signature";

/**
 * Whether a callback's body was signed by the payments service: its header is
 * base64url(SHA-1(password + base64url(body) + password)), padding kept in both. For services that
 * receive callbacks themselves, or what `payments-gateway listen --forward-to` sends.
 *
 * Give the body's raw bytes as they came, before any JSON parser saw them. Compares in constant time
 * and never throws for what a caller may send.
 *
 * @param passwords the merchant's password, and former ones while it is being rotated
 */
export function verifyCallback(
  body: Uint8Array,
  header: string | readonly string[] | null | undefined,
  passwords: string | readonly string[],
): boolean {
  // Two signatures are one too many: which of them would count?
  if (typeof header !== "string") return false;
  const given = Buffer.from(header);
  let verified = false;
  for (const password of typeof passwords === "string" ? [passwords] : passwords) {
    // Anybody could sign with an empty one.
    if (password === "") continue;
    const expected = Buffer.from(signCallback(body, password));
    if (given.length === expected.length && timingSafeEqual(given, expected)) verified = true;
  }
  return verified;
}

/** The signature of a callback's body, for tests of a receiver. */
export function signCallback(body: Uint8Array, password: string): string {
  const digest = createHash("sha1").update(password).update(base64url(body)).update(password);
  return base64url(digest.digest());
}

/** Node's base64url leaves the padding out. */
function base64url(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}
