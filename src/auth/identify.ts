import { type GatewayError, unauthenticated } from "../errors.ts";
import { pickAccount } from "./account.ts";
import { type Caller, type Credential, type Scope, scopes } from "./caller.ts";
import type { ReadJwt } from "./jwt.ts";
import { isWatchToken, type WatchTokens } from "./watch-token.ts";

/** The part of a request that says who is calling. */
export interface Credentials {
  /** Reads a header by its lower-case name. */
  header(name: string): string | null | undefined;
  /** The `watch_token` query parameter, which only the public listener reads. */
  readonly watchToken?: string | undefined;
}

/** The same credentials, for a merchant account that the request does not name. */
export function inAccount(credentials: Credentials, account: string): Credentials {
  const { header } = credentials;
  return {
    ...credentials,
    header: (name) => (name === "x-merchant-account" ? account : header(name)),
  };
}

/**
 * Identifies the caller of a request, for both edges.
 * @throws GatewayError UNAUTHENTICATED, PERMISSION_DENIED for an account that the caller may not
 * use, or UNAVAILABLE when the issuer's keys cannot be fetched.
 */
export type Identify = (credentials: Credentials) => Promise<Caller>;

export interface IdentifyOptions {
  /** Names of the merchant accounts. */
  readonly accounts: ReadonlySet<string>;
  readonly watchTokens: WatchTokens | undefined;
  /** AUTH_MODE=none: a caller without credentials has all scopes except `wallet:pan`. */
  readonly open: boolean;
  /** The credential of an API key, if there is such a key. */
  readonly findKey?: ((key: string) => Credential | undefined) | undefined;
  readonly readJwt?: ReadJwt | undefined;
}

export function createIdentify(options: IdentifyOptions): Identify {
  const { accounts, watchTokens, open, findKey, readJwt } = options;

  function credentialOf(
    authorization: string | null | undefined,
  ): Credential | Promise<Credential> {
    if (!authorization) {
      throw unauthenticated(
        "credentials are missing: send Authorization: Bearer <API key or JWT>",
        { reason: "CREDENTIALS_MISSING" },
      );
    }
    const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
    if (token === undefined || token.length > maxTokenChars) throw invalid();
    const key = findKey?.(token);
    if (key) return key;
    if (readJwt && token.split(".").length === 3) return readJwt(token);
    throw invalid();
  }

  return async ({ header, watchToken = watchTokenOf(header("authorization")) }) => {
    const askedAccount = header("x-merchant-account");
    if (watchToken !== undefined) return watchCaller(watchToken, askedAccount, options);
    const found = open ? anonymous : credentialOf(header("authorization"));
    // No await for an API key: its credential is found synchronously.
    const credential = found instanceof Promise ? await found : found;
    const { merchants, ...grant } = credential;
    const customerToken = header("x-customer-auth");
    return {
      ...grant,
      account: pickAccount(accounts, merchants, askedAccount, grant.customer !== undefined),
      ...(customerToken ? { customerToken } : {}),
    };
  };

  /** A watch token is a JWT that the gateway issued; clients may also send it as a bearer token. */
  function watchTokenOf(authorization: string | null | undefined): string | undefined {
    const token = /^Bearer +(eyJ\S+)/i.exec(authorization ?? "")?.[1];
    return token && watchTokens && isWatchToken(token) ? token : undefined;
  }
}

/** Longer than any token that fits into the headers of a request. */
const maxTokenChars = 16_384;

const anonymous: Credential = {
  name: "anonymous",
  scopes: new Set<Scope>(scopes.filter((scope) => scope !== "wallet:pan")),
};

async function watchCaller(
  token: string,
  askedAccount: string | null | undefined,
  { accounts, watchTokens }: IdentifyOptions,
): Promise<Caller> {
  if (!watchTokens) {
    throw unauthenticated("watch tokens are off: WATCH_TOKEN_SECRET is not set", {
      reason: "WATCH_TOKENS_OFF",
    });
  }
  const { id, account, kind, externalId, expiresAtMs } = await watchTokens.verify(token);
  return {
    name: `watch:${id}`,
    account: pickAccount(accounts, new Set([account]), askedAccount, false),
    scopes: new Set(),
    watch: { kind, externalId },
    expiresAtMs,
  };
}

/** One error for all these cases: it does not tell a stranger what the value was taken for. */
function invalid(): GatewayError {
  return unauthenticated("the API key or token is not valid", { reason: "CREDENTIALS_INVALID" });
}
