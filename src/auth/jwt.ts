import { hash } from "node:crypto";
import { errors, type JWTPayload, jwtVerify } from "jose";
import { GatewayError, unauthenticated } from "../errors.ts";
import { type Credential, isScope, type Scope } from "./caller.ts";
import type { KeySet } from "./key-set.ts";

/** Which claims of a JWT say who its caller is. */
export interface CallerClaims {
  /** Claim that holds the id of the customer whom the token is bound to. */
  readonly customerClaim: string;
  /** Claim that names the service the token was issued to: its tokens take turns as one caller. */
  readonly serviceClaim: string;
}

interface JwtOptions extends CallerClaims {
  readonly keys: Pick<KeySet, "keyOf" | "version">;
  readonly issuer: string;
  readonly audience: string;
}

/**
 * Verifies a JWT and returns its credential.
 * @throws GatewayError UNAUTHENTICATED for an invalid token, UNAVAILABLE if the keys
 * to check it cannot be fetched
 */
export type ReadJwt = (token: string) => Promise<Credential>;

/**
 * Only asymmetric algorithms: with a symmetric one, a forger could use the issuer's public key as
 * the secret (RFC 8725, 3.1).
 */
const algorithms = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** How far the issuer's clock may be ahead of ours, in seconds. It does not extend the expiry. */
const clockToleranceSeconds = 5;

/**
 * A verified token is remembered by its digest, so that its signature is checked only once: until
 * it expires, until the issuer's keys change, or until `maxRemembered` newer tokens are remembered.
 * The same tokens are refused as without this cache.
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
    // Not remembered if the keys changed meanwhile: it may have been verified with the old ones.
    if (version === undefined || keys.version() !== version) return credential;
    remembered.set(id, credential);
    if (remembered.size > maxRemembered) remembered.delete(remembered.keys().next().value ?? id);
    return credential;
  };
}

/** About 5 MB of credentials. */
const maxRemembered = 10_000;

async function verified(
  token: string,
  { keys, issuer, audience, customerClaim, serviceClaim }: JwtOptions,
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
  const service = serviceOf(payload, serviceClaim);
  const scopes = scopesOf(payload);
  if (customer === undefined) {
    const name = `jwt:${shortened(idOf(payload.sub) ?? token)}`;
    return { name, scopes, service, merchants, expiresAtMs };
  }
  // A digest: logs distinguish customers without naming them.
  const name = `customer:${digest(customer)}`;
  return { name, scopes: customerScopesOf(scopes), customer, merchants, expiresAtMs };
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
  return unauthenticated("the token has expired", { reason: "TOKEN_EXPIRED" });
}

function invalid(message: string): GatewayError {
  return unauthenticated(message, { reason: "TOKEN_INVALID" });
}

/** RFC 8693, 4.2: names separated by spaces; some issuers send a list. Skips unknown scopes. */
function scopesOf({ scope = "" }: JWTPayload): ReadonlySet<Scope> {
  if (typeof scope === "string") return new Set(scope.split(" ").filter(isScope));
  if (isTexts(scope)) return new Set(scope.filter(isScope));
  throw invalid("the token's claim scope is not a text");
}

/** The scopes that can be limited to one customer. */
const customerScopes: ReadonlySet<Scope> = new Set([
  "wallet:read",
  "wallet:write",
  "subscriptions:write",
]);

/**
 * A customer may act on their own wallet and subscriptions. A token that names some of these scopes
 * grants only those; one that names none, as from a login service, grants all of them.
 */
function customerScopesOf(granted: ReadonlySet<Scope>): ReadonlySet<Scope> {
  const named = customerScopes.intersection(granted);
  return named.size > 0 ? named : customerScopes;
}

/** A claim that is present but unusable is refused: ignored, it would make a customer a service. */
function customerOf(payload: JWTPayload, claim: string): string | undefined {
  if (!Object.hasOwn(payload, claim)) return undefined;
  const id = idOf(payload[claim]);
  if (id !== undefined) return id;
  throw invalid(`the token's claim ${claim} is not a customer's id`);
}

function idOf(value: unknown): string | undefined {
  if (typeof value === "string" && value !== "") return value;
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

/** A name that goes into every log record and into Redis: a digest stands for a long text. */
function shortened(name: string): string {
  return name.length <= maxNameChars ? name : digest(name);
}

const maxNameChars = 128;

/** A claim that is present but unusable is refused: ignored, each `sub` would take a turn. */
function serviceOf(payload: JWTPayload, claim: string): string | undefined {
  if (!Object.hasOwn(payload, claim)) return undefined;
  const service = payload[claim];
  if (typeof service === "string" && service !== "") return `jwt-service:${shortened(service)}`;
  throw invalid(`the token's claim ${claim} is not the name of a service`);
}

/** Merchant accounts that the token is limited to; undefined without the claim. */
function merchantsOf({ merchants }: JWTPayload): ReadonlySet<string> | undefined {
  if (merchants === undefined) return undefined;
  if (isTexts(merchants)) return new Set(merchants);
  throw invalid("the token's claim merchants is not a list of texts");
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 16);
}
