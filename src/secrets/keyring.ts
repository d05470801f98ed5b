import { createHmac, hkdfSync, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { createSeal } from "./seal.ts";
import type { Secret } from "./secret.ts";

/**
 * The keys that protect one merchant account's stored data. They are derived from the merchant's
 * password, which every replica has and the store does not. Each purpose has keys of its own: what
 * is sealed for one cannot be opened for another.
 */
export type Keyring = Awaited<ReturnType<typeof deriveKeyring>>;

/**
 * Derives the keys of one account. Slow by intent, to hinder guesses of the password: it runs once
 * for each password, before anything is served, and not on the event loop.
 *
 * @param passwords the present one first, then those that are still accepted
 */
export async function deriveKeyring(account: string, passwords: readonly Secret[]) {
  const masters = await Promise.all(
    passwords.map((password) => derive(password.reveal(), `payments-gateway/${account}`, keyBytes)),
  );
  const keysFor = (purpose: string) =>
    masters.map((master) => Buffer.from(hkdfSync("sha256", master, "", purpose, keyBytes)));
  const hashes = keysFor("fingerprint of a request");
  return {
    /** For answers that are stored for calls with the same Idempotency-Key. */
    answers: createSeal(keysFor("stored answer")),
    /** For secret fields of events. */
    events: createSeal(keysFor("event")),
    /** For bodies of callbacks that were not understood. */
    deadLetters: createSeal(keysFor("dead letter")),
    /**
     * Keyed hashes of a request, one per accepted password, the present one first: they show
     * whether two requests differ, and nothing of their content.
     */
    fingerprints: (request: Uint8Array): string[] =>
      hashes.map((key) => createHmac("sha256", key).update(request).digest("base64url")),
  };
}

/** The keyrings of all accounts, by name. */
export async function deriveKeyrings(
  accounts: readonly {
    readonly name: string;
    readonly password: Secret;
    readonly previousPasswords: readonly Secret[];
  }[],
): Promise<ReadonlyMap<string, Keyring>> {
  const derived = accounts.map(async ({ name, password, previousPasswords }) => {
    const keyring = await deriveKeyring(name, [password, ...previousPasswords]);
    return [name, keyring] as const;
  });
  return new Map(await Promise.all(derived));
}

const keyBytes = 32;

const derive = promisify<string, string, number, Buffer>(scrypt);
