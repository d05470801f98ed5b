import { createHash, hash } from "node:crypto";
import { errors, type JWTPayload, jwtVerify } from "jose";
import { GatewayError } from "../errors.ts";
import { type Credential, isScope, type Scope } from "./caller.ts";
import type { KeySet } from "./key-set.ts";

export interface JwtOptions {
  readonly keys: Pick<KeySet, "keyOf" | "version">;
  readonly issuer: string;
  readonly audience: string;
  /** Name of the claim that makes a caller customer-bound. */
  readonly customerClaim: string;
}

/**
 * Reads what a JWT allows.
 * @throws GatewayError UNAUTHENTICATED for an invalid token, UNAVAILABLE if the keys
 * to check it cannot be fetched
 */
export type ReadJwt = (token: string) => Promise<Credential>;

/**
 * Asymmetric algorithms alone: with a symmetric one the issuer's public key would do as the secret
 * (RFC 8725, 3.1).
 */
const algorithms = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** How far the issuer's clock may be ahead of ours, in seconds. Nothing is used past its expiry. */
const clockToleranceSeconds = 5;

/**
 * A token that was found good is remembered by its digest, so that its signature is checked once: until
 * it expires, until the issuer's keys change, or until `maxRemembered` newer ones came. The same
 * tokens are refused as without that.
 */
export function createReadJwt(options: JwtOptions): ReadJwt {
  const { keys } = options;
  const remembered = new Map<string, Credential & { readonly expiresAtMs: number }>();
  let verifiedWith: unknown;

  return async (token) => {
    const version = keys.version();
    if (version === undefined || version !== verifiedWith) remembered.clear();
    verifiedWith = version;
    const id = hash("sha256", token, "base64url");
    const known = remembered.get(id);
    if (known && known.expiresAtMs > Date.now()) return known;
    remembered.delete(id);

    const credential = await verified(token, options);
    // Keys that changed meanwhile may be others than those it was verified with.
    if (version === undefined || keys.version() !== version) return credential;
    remembered.set(id, credential);
    if (remembered.size > maxRemembered) remembered.delete(remembered.keys().next().value ?? id);
    return credential;
  };
}

/** Some 5 MB of callers. */
const maxRemembered = 10_000;

async function verified(
  token: string,
  { keys, issuer, audience, customerClaim }: JwtOptions,
): Promise<Credential & { readonly expiresAtMs: number }> {
  const { payload } = await jwtVerify(token, keys.keyOf, {
    algorithms,
    issuer,
    audience,
    requiredClaims: ["exp"],
    clockTolerance: clockToleranceSeconds,
  }).catch((error: unknown) => {
    throw refusalOf(error);
  });
  const expiresAtMs = (payload.exp ?? 0) * 1_000;
  if (expiresAtMs <= Date.now()) throw expired();
  const merchants = merchantsOf(payload);
  const customer = customerOf(payload, customerClaim);
  const granted = scopesOf(payload);
  return {
    ...(customer === undefined
      ? { name: `jwt:${payload.sub ?? digest(token)}`, scopes: granted }
      : {
          // Logs distinguish customers, and do not say who they are.
          name: `customer:${digest(customer)}`,
          scopes: customerScopesOf(granted),
          customer,
        }),
    ...(merchants ? { merchants } : {}),
    expiresAtMs,
  };
}

function refusalOf(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof errors.JWTExpired) return expired();
  if (error instanceof errors.JWTClaimValidationFailed) {
    // The claim's name helps to set up a caller, and tells an attacker nothing new.
    return invalid(`the token's claim ${error.claim} is missing or wrong`);
  }
  return invalid("the token is not valid");
}

function expired(): GatewayError {
  return new GatewayError("UNAUTHENTICATED", "the token has expired", { reason: "TOKEN_EXPIRED" });
}

function invalid(message: string): GatewayError {
  return new GatewayError("UNAUTHENTICATED", message, { reason: "TOKEN_INVALID" });
}

/** RFC 8693, 4.2: names with spaces between; some issuers write a list. Those of others are skipped. */
function scopesOf({ scope = "" }: JWTPayload): ReadonlySet<Scope> {
  if (typeof scope === "string") return new Set(scope.split(" ").filter(isScope));
  if (isTexts(scope)) return new Set(scope.filter(isScope));
  throw invalid("the token's claim scope is not a text");
}

/** The scopes that mean something for one customer alone. */
const customerScopes: ReadonlySet<Scope> = new Set([
  "wallet:read",
  "wallet:write",
  "subscriptions:write",
]);

/**
 * A customer may act on the own wallet and subscriptions. An issuer that names some of their scopes
 * grants those; one that names none, as login services do, grants all of them by the claim alone.
 */
function customerScopesOf(granted: ReadonlySet<Scope>): ReadonlySet<Scope> {
  const named = customerScopes.intersection(granted);
  return named.size > 0 ? named : customerScopes;
}

/** A claim that is there and says nothing must not make a service of a customer. */
function customerOf(payload: JWTPayload, claim: string): string | undefined {
  if (!Object.hasOwn(payload, claim)) return undefined;
  const id = payload[claim];
  if (typeof id === "string" && id !== "") return id;
  if (Number.isSafeInteger(id)) return String(id);
  throw invalid(`the token's claim ${claim} is not a customer's id`);
}

/** Merchant accounts that the token is limited to; undefined when it does not say. */
function merchantsOf({ merchants }: JWTPayload): ReadonlySet<string> | undefined {
  if (merchants === undefined) return undefined;
  if (isTexts(merchants)) return new Set(merchants);
  throw invalid("the token's claim merchants is not a list of texts");
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}
