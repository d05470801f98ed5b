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

/**
 * Verifies the credentials of a request.
 * @throws GatewayError UNAUTHENTICATED, or UNAVAILABLE when the issuer's keys cannot be fetched
 */
export type Verify = (credentials: Credentials) => Credential | Promise<Credential>;

/**
 * Identifies the caller of a request, for both edges.
 * @param account the merchant account that the call is for. Default: the one that the request names
 * @throws GatewayError as `Verify`, PERMISSION_DENIED for an account that the caller may not use
 */
export type Identify = (credentials: Credentials, account?: string) => Promise<Caller>;

export interface VerifyOptions {
  readonly watchTokens: WatchTokens | undefined;
  /** AUTH_MODE=none: a caller without credentials has all scopes except `wallet:pan`. */
  readonly open: boolean;
  /** The credential of an API key, if there is such a key. */
  readonly findKey?: ((key: string) => Credential | undefined) | undefined;
  readonly readJwt?: ReadJwt | undefined;
}

/** @param accounts names of the merchant accounts */
export function createIdentify(verify: Verify, accounts: ReadonlySet<string>): Identify {
  return async (credentials, account) => {
    const { header } = credentials;
    const found = verify(credentials);
    // No await for an API key: its credential is found synchronously.
    const { merchants, ...grant } = found instanceof Promise ? await found : found;
    const asked = account ?? header("x-merchant-account");
    const customerToken = header("x-customer-auth");
    return {
      ...grant,
      account: pickAccount(accounts, merchants, asked, grant.customer !== undefined),
      ...(customerToken ? { customerToken } : {}),
    };
  };
}

export function createVerify({ watchTokens, open, findKey, readJwt }: VerifyOptions): Verify {
  return ({ header, watchToken }) => {
    const authorization = header("authorization");
    const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? "")?.[1];
    if (watchToken !== undefined && !watchTokens) {
      throw unauthenticated("watch tokens are off: WATCH_TOKEN_SECRET is not set", {
        reason: "WATCH_TOKENS_OFF",
      });
    }
    // A watch token is a JWT that the gateway issued; clients may also send it as a bearer token.
    const watch = watchToken ?? (token && watchTokens && isWatchToken(token) ? token : undefined);
    if (watchTokens && watch !== undefined) return watchTokens.verify(watch);
    if (open) return anonymous;
    if (!authorization) {
      throw unauthenticated(
        "credentials are missing: send Authorization: Bearer <API key or JWT>",
        { reason: "CREDENTIALS_MISSING" },
      );
    }
    if (token === undefined || token.length > maxTokenChars) throw invalid();
    const key = findKey?.(token);
    if (key) return key;
    if (readJwt && token.split(".").length === 3) return readJwt(token);
    throw invalid();
  };
}

/** Longer than any token that fits into the headers of a request. */
const maxTokenChars = 16_384;

const anonymous: Credential = {
  name: "anonymous",
  scopes: new Set<Scope>(scopes.filter((scope) => scope !== "wallet:pan")),
};

/** One error for all these cases: it does not tell a stranger what the value was taken for. */
function invalid(): GatewayError {
  return unauthenticated("the API key or token is not valid", { reason: "CREDENTIALS_INVALID" });
}
