import { hash, timingSafeEqual } from "node:crypto";
import { Secret } from "../secrets/secret.ts";

/** The header that carries a callback's signature. */
export const signatureHeader = "x-service-signature";

/**
 * The `X-SERVICE-SIGNATURE` of a callback body (spec, Authentication part 4):
 * base64url(SHA-1(password + base64url(body) + password)), padding kept in both. The body is the
 * raw bytes, whatever they are; the password is taken as UTF-8, untrimmed.
 */
export function sign(body: Uint8Array, password: Secret | string): string {
  return signatureOf(base64url(body), textOf(password));
}

function signatureOf(encoded: string, key: string): string {
  return padded(hash("sha1", key + encoded + key, "base64url"));
}

function textOf(password: Secret | string): string {
  return password instanceof Secret ? password.reveal() : password;
}

/** The form of every signature: 20 bytes as base64url, with padding. */
export const signatureForm = /^[\w-]{27}=$/;

/**
 * Whether the header is the body's signature under one of the passwords, compared as text (a
 * decoder would accept altered trailing bits) and in constant time. An empty password never
 * verifies: anybody could sign with it. Never throws.
 */
export function verify(
  body: Uint8Array,
  header: string | undefined,
  passwords: readonly (Secret | string)[],
): boolean {
  if (typeof header !== "string") return false;
  const given = Buffer.from(header);
  const keys = passwords.map(textOf).filter((key) => key !== "");
  // Once for all passwords: it takes as long as the rest.
  const encoded = base64url(body);
  let verified = false;
  for (const key of keys) {
    const expected = Buffer.from(signatureOf(encoded, key));
    // Try every password, so that the time does not reveal which one matches.
    if (given.length === expected.length && timingSafeEqual(given, expected)) verified = true;
  }
  return verified;
}

function base64url({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return padded(Buffer.from(buffer, byteOffset, byteLength).toString("base64url"));
}

/** Node's base64url leaves the padding out. */
function padded(text: string): string {
  const missing = -text.length & 3;
  return missing === 0 ? text : text + "=".repeat(missing);
}
