import { GatewayError } from "../errors.ts";
import { type Caller, type Scope, scopes } from "./caller.ts";
import type { WatchTokens } from "./watch-token.ts";

/** The part of a request that says who is calling. */
export interface Credentials {
  /** Reads a header by its lower-case name. */
  header(name: string): string | null | undefined;
  /** The `watch_token` query parameter, which only the public listener reads. */
  readonly watchToken?: string | undefined;
}

/**
 * Reads the caller of a request, for both edges.
 * @throws GatewayError UNAUTHENTICATED, or PERMISSION_DENIED for an account that is not the caller's.
 */
export type Identify = (credentials: Credentials) => Promise<Caller>;

export interface IdentifyOptions {
  /** Names of the merchant accounts. */
  readonly accounts: ReadonlySet<string>;
  readonly watchTokens: WatchTokens | undefined;
}

/** AUTH_MODE=none: everybody has all scopes but `wallet:pan`; a watch token narrows them. */
export function createIdentify({ accounts, watchTokens }: IdentifyOptions): Identify {
  return async (credentials) => {
    const customerToken = credentials.header("x-customer-auth");
    if (credentials.watchToken !== undefined) {
      return watchCaller(credentials.watchToken, watchTokens);
    }
    return {
      name: "anonymous",
      account: pickAccount(accounts, credentials.header("x-merchant-account")),
      scopes: allButPan,
      ...(customerToken ? { customerToken } : {}),
    };
  };
}

const allButPan: ReadonlySet<Scope> = new Set(scopes.filter((scope) => scope !== "wallet:pan"));

async function watchCaller(token: string, watchTokens: WatchTokens | undefined): Promise<Caller> {
  if (!watchTokens) {
    throw new GatewayError("UNAUTHENTICATED", "watch tokens need WATCH_TOKEN_SECRET to be set", {
      reason: "WATCH_TOKENS_OFF",
    });
  }
  const grant = await watchTokens.verify(token);
  return {
    name: "watch token",
    account: grant.account,
    scopes: new Set(),
    watch: { kind: grant.kind, externalId: grant.externalId },
    expiresAtMs: grant.expiresAtMs,
  };
}

/** Without the header: `default`, or the only account. An unknown name is refused, not revealed. */
function pickAccount(accounts: ReadonlySet<string>, asked: string | null | undefined): string {
  const [first] = accounts;
  const name = asked || (accounts.size === 1 ? first : "default");
  if (name !== undefined && accounts.has(name)) return name;
  throw new GatewayError(
    "PERMISSION_DENIED",
    asked
      ? "the merchant account in x-merchant-account is unknown or not yours"
      : "say which merchant account in x-merchant-account",
    { reason: "MERCHANT_ACCOUNT_REFUSED" },
  );
}
