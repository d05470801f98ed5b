import { deriveKeyrings } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";

/** The merchant account of all simulations. */
export const account = "shop";

/** The gateways' password at the service, which also signs callbacks. */
export const password = "password";

export const merchant = {
  ...{ name: account, url: "http://service", login: "shop" },
  ...{ password: new Secret(password), previousPasswords: [] },
};

export const keyrings = await deriveKeyrings([merchant]);
