import { deriveKeyrings } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";

/** The merchant accounts of all simulations; the first one is that of most steps. */
export const accounts = ["shop", "kiosk"] as const;
export type Account = (typeof accounts)[number];

/** The password of all accounts at the service, which also signs callbacks. */
export const password = "password";

export const merchants = accounts.map((name) => ({
  ...{ name, url: "http://service", login: name },
  ...{ password: new Secret(password), previousPasswords: [] },
}));

const keyrings = await deriveKeyrings(merchants);

export function keyringOf(account: string) {
  const keyring = keyrings.get(account);
  if (!keyring) throw new Error(`no keyring of ${account}`);
  return keyring;
}
export { keyrings };

/**
 * The name of a payment or payout in a history. Two accounts may use the same external_id, but the
 * checks must not take one for the other.
 */
export function nameIn(account: Account, externalId: string): string {
  return account === accounts[0] ? externalId : `${account}:${externalId}`;
}

/** The account and external_id of such a name. */
export function partsOf(name: string): { account: Account; externalId: string } {
  const account = accounts.find((other) => name.startsWith(`${other}:`)) ?? accounts[0];
  return { account, externalId: name.slice(name.indexOf(":") + 1) };
}
