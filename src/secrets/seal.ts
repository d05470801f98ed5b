import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";

/**
 * Encrypts stored data (AES-256-GCM), so that the store alone does not reveal it. Sealed data opens
 * only with the same context: copied to another record, it does not open.
 */
export interface Seal {
  /** Encrypts a text. @param context identifies what the text belongs to; it is not stored */
  close(text: Uint8Array, context: string | Uint8Array): Buffer;
  /** Decrypts a text; undefined if no key fits, or if any of it or its context was changed. */
  open(sealed: Uint8Array, context: string | Uint8Array): Buffer | undefined;
}

/**
 * A seal encrypts with a key of its own, derived from the first key and a random salt that is
 * stored with each text. So its nonces only have to differ from each other: they count (NIST SP
 * 800-38D, 8.2.1).
 *
 * @param keys 32 bytes each: the first one encrypts, all of them decrypt
 */
export function createSeal(keys: readonly Buffer[]): Seal {
  const ownSalt = randomBytes(saltBytes);
  const [ownKey] = saltedKeys(keys, ownSalt);
  if (!ownKey) throw new Error("a seal needs a key");
  const nonce = Buffer.alloc(nonceBytes);
  let count = 0;
  /** Derived keys by the salt of the seal that encrypted, this one or another process's. */
  const salted = new Map<string, readonly KeyObject[]>();

  function keysWith(salt: Uint8Array): readonly KeyObject[] {
    const name = Buffer.from(salt).toString("latin1");
    let found = salted.get(name);
    if (!found) {
      found = saltedKeys(keys, salt);
      // There is a salt for each process that was started while stored data lives: bound the cache.
      if (salted.size >= maxSalts) salted.clear();
      salted.set(name, found);
    }
    return found;
  }

  return {
    close(text, context) {
      nonce.writeUIntBE(++count, nonceBytes - 6, 6);
      const cipher = createCipheriv(algorithm, ownKey, nonce).setAAD(bytesOf(context));
      const closed = cipher.update(text);
      return joined([ownSalt, nonce, closed, cipher.final(), cipher.getAuthTag()]);
    },

    open(sealed, context) {
      if (sealed.length < saltBytes + nonceBytes + tagBytes) return undefined;
      const salt = sealed.subarray(0, saltBytes);
      const nonce = sealed.subarray(saltBytes, saltBytes + nonceBytes);
      const closed = sealed.subarray(saltBytes + nonceBytes, -tagBytes);
      const tag = sealed.subarray(-tagBytes);
      for (const key of keysWith(salt)) {
        const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
        decipher.setAAD(bytesOf(context)).setAuthTag(tag);
        const text = decipher.update(closed);
        try {
          return Buffer.concat([text, decipher.final()]);
        } catch {
          // Sealed with another key, or changed, or not sealed by us.
        }
      }
      return undefined;
    },
  };
}

/**
 * The parts one after another, in memory of their own. `Buffer.concat` gives a piece of Node's pool,
 * all 64 KiB of which are copied when a message takes it to another thread.
 */
export function joined(parts: readonly Uint8Array[]): Buffer {
  const whole = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const algorithm = "aes-256-gcm";
const saltBytes = 16;
const nonceBytes = 12;
const tagBytes = 16;
const maxSalts = 1_000;

function saltedKeys(keys: readonly Buffer[], salt: Uint8Array): KeyObject[] {
  return keys.map((key) =>
    createSecretKey(Buffer.from(hkdfSync("sha256", key, salt, "sealed with one salt", 32))),
  );
}

function bytesOf(context: string | Uint8Array): Uint8Array {
  return typeof context === "string" ? Buffer.from(context) : context;
}
