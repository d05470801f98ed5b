import { randomUUID } from "node:crypto";
import { decodeJwt, errors, type JWTPayload, jwtVerify, SignJWT } from "jose";
import { type GatewayError, unauthenticated } from "../errors.ts";
import { type Kind, kindNamed, kinds } from "../model/kinds.ts";
import type { Secret } from "../secrets/secret.ts";
import type { Credential } from "./caller.ts";

/** What a watch token allows: to watch this one payment or payout, and nothing else. */
export interface WatchGrant {
  readonly account: string;
  readonly kind: Kind;
  readonly externalId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

export type WatchTokens = ReturnType<typeof createWatchTokens>;

const audience = "payments-gateway/watch";
/** The longest life of a watch token, in seconds. */
const maxLifeSeconds = 24 * 3_600;

/**
 * Makes and reads watch tokens: short-lived JWTs, HS256.
 * @param previous earlier secrets: tokens signed with them stay valid until they expire
 */
export function createWatchTokens(secret: Secret, previous: readonly Secret[] = []) {
  const key = keyOf(secret);
  const keys = [key, ...previous.map(keyOf)];
  return {
    issue({ account, kind, externalId, expiresAtMs }: WatchGrant): Promise<string> {
      return new SignJWT({ account, kind: kinds[kind].name, external_id: externalId })
        .setProtectedHeader({ alg: "HS256", typ: "JWT" })
        .setAudience(audience)
        .setJti(randomUUID())
        .setIssuedAt()
        .setExpirationTime(Math.floor(expiresAtMs / 1_000))
        .sign(key);
    },

    /** @throws GatewayError UNAUTHENTICATED for a token that is expired or not the gateway's */
    async verify(token: string): Promise<Credential> {
      const payload = await verified(token, keys).catch((error: unknown) => {
        if (!(error instanceof errors.JWTExpired)) throw invalid();
        throw unauthenticated("the watch token has expired", { reason: "WATCH_TOKEN_EXPIRED" });
      });
      const { account, kind, external_id, exp = 0, iat = 0, jti = "" } = payload;
      const kindValue = kindNamed(String(kind));
      if (
        typeof account !== "string" ||
        typeof external_id !== "string" ||
        kindValue === undefined ||
        exp - iat > maxLifeSeconds
      ) {
        throw invalid();
      }
      return {
        // The token's id is not secret.
        name: `watch:${jti}`,
        merchants: new Set([account]),
        scopes: new Set(),
        watch: { kind: kindValue, externalId: external_id },
        expiresAtMs: exp * 1_000,
      };
    },
  };
}

function keyOf(secret: Secret): Uint8Array {
  return new TextEncoder().encode(secret.reveal());
}

async function verified(token: string, keys: readonly Uint8Array[]): Promise<JWTPayload> {
  const requirements = {
    algorithms: ["HS256"],
    audience,
    requiredClaims: ["exp", "iat", "jti"],
  };
  for (const key of keys) {
    try {
      return (await jwtVerify(token, key, requirements)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw invalid();
}

/** Whether a token claims to be a watch token; only `verify` checks that it is valid. */
export function isWatchToken(token: string): boolean {
  // Checked first: `decodeJwt` would build an error on every call with an API key.
  if (!jwtShape.test(token)) return false;
  try {
    const { aud } = decodeJwt(token);
    return aud === audience;
  } catch {
    return false;
  }
}

const jwtShape = /^eyJ[\w-]*\.[\w-]+\.[\w-]+$/;

function invalid(): GatewayError {
  return unauthenticated("the watch token is not valid", { reason: "WATCH_TOKEN_INVALID" });
}
