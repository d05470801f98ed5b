import { createHash, hash, timingSafeEqual } from "node:crypto";
import { Secret } from "../secrets/secret.ts";

/** The header that carries a callback's signature. */
export const signatureHeader = "x-service-signature";

/**
 * The `X-SERVICE-SIGNATURE` of a callback body (spec, Authentication part 4):
 * base64url(SHA-1(password + base64url(body) + password)), padding kept in both. The body is the
 * raw bytes, whatever they are; the password is taken as UTF-8, untrimmed.
 */
export function sign(body: Uint8Array, password: Secret | string): string {
  const key = textOf(password);
  return padded(hash("sha1", key + base64url(body) + key, "base64url"));
}

/** The signatures of a body under each of the keys. The body is encoded once, piece by piece. */
function signaturesOf(body: Uint8Array, keys: readonly string[]): string[] {
  if (body.length <= pieceBytes) return keys.map((key) => sign(body, key));
  const hashes = keys.map((key) => createHash("sha1").update(key));
  for (let at = 0; at < body.length; at += pieceBytes) {
    // Only the last piece can need padding.
    const piece = base64url(body.subarray(at, at + pieceBytes));
    for (const each of hashes) each.update(piece, "latin1");
  }
  return hashes.map((each, index) => padded(each.update(keys[index] ?? "").digest("base64url")));
}

/** A multiple of three bytes, whose text has no padding. */
const pieceBytes = 3 * 8_192;

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
  let verified = false;
  for (const text of signaturesOf(body, keys)) {
    const expected = Buffer.from(text);
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
