import { createCipheriv, createDecipheriv, createHmac, randomBytes, scryptSync } from "node:crypto";
import type { Secret } from "../secret.ts";

/**
 * Keeps what is stored of requests and answers unreadable to who has the store alone: requests are
 * hashed and answers encrypted with keys that come from the merchant's password, which all replicas
 * have and the store has not.
 */
export interface Seal {
  /** Keyed hashes of a request, one per accepted password, the present one first. */
  fingerprints(request: Uint8Array): string[];
  /** An answer as it is stored (AES-256-GCM). */
  close(answer: Uint8Array): Buffer;
  /** The answer again; undefined when it was sealed with a password that is no longer accepted. */
  open(sealed: Buffer): Buffer | undefined;
}

/** @param passwords the present one first, then those that are still accepted */
export function createSeal(passwords: readonly Secret[]): Seal {
  let derived: readonly { hash: Buffer; cipher: Buffer }[] | undefined;
  // Slow by intent, as against guesses of the password; so once, and only if a key is ever given.
  const keys = () => {
    derived ??= passwords.map((password) => {
      const bytes = scryptSync(password.reveal(), "payments-gateway idempotency", 64);
      return { hash: bytes.subarray(0, 32), cipher: bytes.subarray(32) };
    });
    return derived;
  };
  return {
    fingerprints: (request) =>
      keys().map(({ hash }) => createHmac("sha256", hash).update(request).digest("base64url")),

    close(answer) {
      const nonce = randomBytes(nonceBytes);
      const [present] = keys();
      if (!present) throw new Error("a seal needs a password");
      const cipher = createCipheriv(algorithm, present.cipher, nonce);
      const text = Buffer.concat([cipher.update(answer), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]);
    },

    open(sealed) {
      const nonce = sealed.subarray(0, nonceBytes);
      const tag = sealed.subarray(nonceBytes, nonceBytes + tagBytes);
      for (const { cipher: key } of keys()) {
        try {
          const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
          decipher.setAuthTag(tag);
          const text = decipher.update(sealed.subarray(nonceBytes + tagBytes));
          return Buffer.concat([text, decipher.final()]);
        } catch {
          // Another password's, or not ours at all.
        }
      }
      return undefined;
    },
  };
}

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;
