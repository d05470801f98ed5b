import { isLoopback } from "../net/loopback.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { boolean } from "./values.ts";

/**
 * Checks the merchant accounts as a whole.
 * @throws ConfigError when two of them share a password, or one would send cards unencrypted
 */
export function checkAccounts(
  read: Reader,
  accounts: ReadonlyMap<string, MerchantAccount>,
  merchantsFile: string | undefined,
): void {
  const allowPlaintext = read("ALLOW_PLAINTEXT_UPSTREAM", boolean, "false");
  const owners = new Map<string, string>();
  for (const { name, url, password, previousPasswords } of accounts.values()) {
    for (const secret of [password, ...previousPasswords]) {
      const owner = owners.get(secret.reveal());
      if (owner !== undefined && owner !== name) {
        throw new ConfigError(
          "MERCHANTS_FILE",
          `${merchantsFile}: ${owner} and ${name} share a password (previous ones count), so each would accept callbacks signed for the other; accepted is a different password for each account`,
        );
      }
      owners.set(secret.reveal(), name);
    }
    if (url !== "" && !allowPlaintext && isPlaintext(url)) {
      throw new ConfigError(
        merchantsFile === undefined ? "UPSTREAM_URL" : "MERCHANTS_FILE",
        `the upstream of ${name} is http: off loopback (${new URL(url).host}): cards and credentials would be sent unencrypted; accepted is https, or ALLOW_PLAINTEXT_UPSTREAM=true`,
      );
    }
  }
}

/** Whether requests to this URL can be read and changed in transit. */
export function isPlaintext(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}
