import { hash } from "node:crypto";
import { noReport, type Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import { createApiKeys } from "./api-keys.ts";
import type { Credential } from "./caller.ts";
import { createIdentify, createVerify, type Verify } from "./identify.ts";
import { type CallerClaims, createReadJwt } from "./jwt.ts";
import { fileKeySet, remoteKeySet } from "./key-set.ts";
import type { WatchTokens } from "./watch-token.ts";

export interface AuthOptions extends CallerClaims {
  readonly modes: ReadonlySet<"none" | "keys" | "jwt">;
  /** Set in the mode `keys`. */
  readonly apiKeysFile?: string | undefined;
  /** Set in the mode `jwt`. */
  readonly jwt?:
    | {
        /** Where the JSON Web Key Set of the tokens' issuer is. */
        readonly keySet: { readonly url: string } | { readonly file: string };
        readonly issuer: string;
        readonly audience: string;
      }
    | undefined;
}

/**
 * Creates `verify` and `identify` for the configured modes. `close` stops watching the key files.
 * @param accounts names of the merchant accounts
 * @throws ConfigError for a file that cannot be read or is wrong
 */
export function createAuthentication(
  { modes, apiKeysFile: path, jwt, ...claims }: AuthOptions,
  accounts: ReadonlySet<string>,
  watchTokens?: WatchTokens,
  report: Report = noReport,
) {
  const apiKeys =
    path === undefined
      ? undefined
      : createApiKeys({ variable: "API_KEYS_FILE", path, report }, accounts);
  const keys =
    jwt &&
    ("file" in jwt.keySet
      ? fileKeySet({ variable: "AUTH_JWKS_FILE", path: jwt.keySet.file, report })
      : remoteKeySet(jwt.keySet.url, (reason) => report("keySetNotFetched", { reason })));
  const verify = createVerify({
    ...{ watchTokens, findKey: apiKeys?.find, open: modes.has("none") },
    readJwt: jwt && keys && createReadJwt({ ...jwt, ...claims, keys }),
  });
  return {
    verify,
    identify: createIdentify(verify, accounts),
    close() {
      apiKeys?.close();
      keys?.close();
    },
  };
}

/** Verifies operators by one key, where all other callers need none. */
export function verifyOperator(key: Secret): Verify {
  const digest = hash("sha256", key.reveal());
  const operator: Credential = { name: "operator", scopes: new Set(["admin"]) };
  // Found by its hash, as API keys are.
  const findKey = (given: string) => (hash("sha256", given) === digest ? operator : undefined);
  return createVerify({ watchTokens: undefined, open: false, findKey });
}
