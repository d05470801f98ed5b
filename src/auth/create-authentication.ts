import { hash } from "node:crypto";
import { noReport, type Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import { createApiKeys } from "./api-keys.ts";
import type { Credential } from "./caller.ts";
import { createIdentify, type Identify, type IdentifyOptions } from "./identify.ts";
import { type CallerClaims, createReadJwt } from "./jwt.ts";
import { fileKeySet, type KeySet, remoteKeySet } from "./key-set.ts";

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
 * Creates `identify` for the configured modes. `close` stops watching the key files.
 * @throws ConfigError for a file that cannot be read or is wrong
 */
export function createAuthentication(
  options: AuthOptions &
    Pick<IdentifyOptions, "accounts" | "watchTokens"> & { readonly report?: Report },
) {
  const { modes, apiKeysFile: path, jwt, customerClaim, serviceClaim } = options;
  const { accounts, watchTokens, report = noReport } = options;
  const apiKeys =
    path === undefined
      ? undefined
      : createApiKeys({ variable: "API_KEYS_FILE", path, report }, accounts);
  const keys = jwt && openKeySet(jwt.keySet, report);
  return {
    identify: createIdentify({
      ...{ accounts, watchTokens, findKey: apiKeys?.find },
      open: modes.has("none"),
      readJwt: jwt && keys && createReadJwt({ ...jwt, keys, customerClaim, serviceClaim }),
    }),
    close() {
      apiKeys?.close();
      keys?.close();
    },
  };
}

/** Identifies operators by one key, where all other callers need none. */
export function identifyOperator(key: Secret, accounts: ReadonlySet<string>): Identify {
  const digest = hash("sha256", key.reveal());
  const operator: Credential = { name: "operator", scopes: new Set(["admin"]) };
  // Found by its hash, as API keys are.
  const findKey = (given: string) => (hash("sha256", given) === digest ? operator : undefined);
  return createIdentify({ accounts, watchTokens: undefined, open: false, findKey });
}

function openKeySet(source: NonNullable<AuthOptions["jwt"]>["keySet"], report: Report): KeySet {
  if ("file" in source) {
    return fileKeySet({ variable: "AUTH_JWKS_FILE", path: source.file, report });
  }
  return remoteKeySet(source.url, (reason) => report("keySetNotFetched", { reason }));
}
