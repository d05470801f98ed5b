import { hash } from "node:crypto";
import { errors, type JWTPayload, jwtVerify } from "jose";
import * as z from "zod";
import { GatewayError, unauthenticated } from "../errors.ts";
import { type Credential, isScope, type Scope, tokenExpired } from "./caller.ts";
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
  if (expiresAtMs <= Date.now()) throw tokenExpired();
  const accounts = claimed(payload, "merchants", texts, "a list of texts");
  const merchants = accounts && new Set(accounts);
  const customer = claimed(payload, customerClaim, id, "a customer's id");
  const group = claimed(payload, serviceClaim, text, "the name of a service");
  const scopes = new Set(claimed(payload, "scope", scopeNames, "a text")?.filter(isScope));
  if (customer === undefined) {
    const name = `jwt:${shortened(id.safeParse(payload.sub).data ?? token)}`;
    const service = group && `jwt-service:${shortened(group)}`;
    return { name, scopes, service, merchants, expiresAtMs };
  }
  // A digest: logs distinguish customers without naming them.
  const name = `customer:${digest(customer)}`;
  return { name, scopes: customerScopesOf(scopes), customer, merchants, expiresAtMs };
}

function refusalOf(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof errors.JWTExpired) return tokenExpired();
  if (error instanceof errors.JWTClaimValidationFailed) {
    // The claim's name helps to set up a caller, and tells an attacker nothing new.
    return invalid(`the token's claim ${error.claim} is missing or wrong`);
  }
  return invalid("the token is not valid");
}

function invalid(message: string): GatewayError {
  return unauthenticated(message, { reason: "TOKEN_INVALID" });
}

/**
 * The value of a claim; undefined without it. A claim that is present but unusable is refused:
 * ignored, it would make a customer a service, or give each `sub` a turn.
 */
function claimed<T>(
  payload: JWTPayload,
  claim: string,
  schema: z.ZodType<T>,
  what: string,
): T | undefined {
  if (!Object.hasOwn(payload, claim)) return undefined;
  const { success, data } = schema.safeParse(payload[claim]);
  if (success) return data;
  throw invalid(`the token's claim ${claim} is not ${what}`);
}

const text = z.string().min(1);
const texts = z.array(z.string());
/** Of a customer, or of the caller (`sub`). */
const id = z.union([text, z.int().transform(String)]);
/** RFC 8693, 4.2: names separated by spaces; some issuers send a list. */
const scopeNames = z.union([z.string().transform((names) => names.split(" ")), texts]);

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

/** A name that goes into every log record and into Redis: a digest stands for a long text. */
function shortened(name: string): string {
  return name.length <= maxNameChars ? name : digest(name);
}

const maxNameChars = 128;

function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 16);
}
