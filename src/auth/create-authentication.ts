import { hash } from "node:crypto";
import { noReport, type Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import { createApiKeys } from "./api-keys.ts";
import type { Credential } from "./caller.ts";
import { createIdentify, type Identify } from "./identify.ts";
import { createReadJwt } from "./jwt.ts";
import { fileKeySet, type KeySet, remoteKeySet } from "./key-set.ts";
import type { WatchTokens } from "./watch-token.ts";

/** Where the JSON Web Key Set of the tokens' issuer is. */
export type KeySetSource = { readonly url: string } | { readonly file: string };

export interface AuthOptions {
  readonly modes: ReadonlySet<"none" | "keys" | "jwt">;
  /** Set in the mode `keys`. */
  readonly apiKeysFile?: string | undefined;
  /** Claim that holds the id of the customer whom a JWT is bound to. */
  readonly customerClaim: string;
  /** Claim that names the service a JWT was issued to: its tokens take turns as one caller. */
  readonly serviceClaim: string;
  /** Set in the mode `jwt`. */
  readonly jwt?:
    | { readonly keySet: KeySetSource; readonly issuer: string; readonly audience: string }
    | undefined;
}

export interface AuthenticationOptions extends AuthOptions {
  /** Names of the merchant accounts. */
  readonly accounts: ReadonlySet<string>;
  readonly watchTokens: WatchTokens | undefined;
  /** Default: nothing is reported. */
  readonly report?: Report;
}

/**
 * Creates `identify` for the configured modes. `close` stops watching the key files.
 * @throws FileError for a file that cannot be read or is wrong
 */
export function createAuthentication(options: AuthenticationOptions): {
  readonly identify: Identify;
  close(): void;
} {
  const { modes, apiKeysFile, jwt, customerClaim, serviceClaim } = options;
  const { accounts, watchTokens, report = noReport } = options;
  const apiKeys =
    apiKeysFile === undefined
      ? undefined
      : createApiKeys({ variable: "API_KEYS_FILE", path: apiKeysFile, report }, accounts);
  const keySet = jwt && openKeySet(jwt.keySet, report);
  const readJwt =
    jwt && keySet && createReadJwt({ ...jwt, keys: keySet, customerClaim, serviceClaim });
  return {
    identify: createIdentify({
      accounts,
      watchTokens,
      open: modes.has("none"),
      apiKeys,
      readJwt,
    }),
    close() {
      apiKeys?.close();
      keySet?.close();
    },
  };
}

/** Identifies operators by one key, where all other callers need none. */
export function identifyOperator(key: Secret, accounts: ReadonlySet<string>): Identify {
  const digest = hash("sha256", key.reveal());
  const operator: Credential = { name: "operator", scopes: new Set(["admin"]) };
  // Found by its hash, as API keys are.
  const find = (given: string) => (hash("sha256", given) === digest ? operator : undefined);
  const apiKeys = { find, close() {} };
  return createIdentify({ accounts, watchTokens: undefined, open: false, apiKeys });
}

function openKeySet(source: KeySetSource, report: Report): KeySet {
  if ("file" in source) {
    return fileKeySet({ variable: "AUTH_JWKS_FILE", path: source.file, report });
  }
  return remoteKeySet({
    url: source.url,
    onProblem: (reason) => report("keySetNotFetched", { reason }),
  });
}
