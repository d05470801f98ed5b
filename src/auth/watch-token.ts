import { errors, jwtVerify, SignJWT } from "jose";
import { GatewayError } from "../errors.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";
import type { Secret } from "../secret.ts";

/** What a watch token allows: to watch this one payment or payout, and nothing else. */
export interface WatchGrant {
  readonly account: string;
  readonly kind: EventKind;
  readonly externalId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/** Makes and reads watch tokens: short-lived JWTs, HS256 (contract, section 6). */
export interface WatchTokens {
  issue(grant: WatchGrant): Promise<string>;
  /** @throws GatewayError UNAUTHENTICATED for a token that is not ours, or expired. */
  verify(token: string): Promise<WatchGrant>;
}

const audience = "payments-gateway/watch";
const kinds = new Map([
  ["payment", EventKind.PAYMENT],
  ["payout", EventKind.PAYOUT],
]);

export function createWatchTokens(secret: Secret): WatchTokens {
  const key = new TextEncoder().encode(secret.reveal());
  return {
    issue({ account, kind, externalId, expiresAtMs }) {
      const kindName = [...kinds].find(([, value]) => value === kind)?.[0];
      return new SignJWT({ account, kind: kindName, external_id: externalId })
        .setProtectedHeader({ alg: "HS256", typ: "JWT" })
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime(Math.floor(expiresAtMs / 1_000))
        .sign(key);
    },

    async verify(token) {
      const { payload } = await jwtVerify(token, key, { algorithms: ["HS256"], audience }).catch(
        (error: unknown) => {
          const expired = error instanceof errors.JWTExpired;
          throw new GatewayError(
            "UNAUTHENTICATED",
            expired ? "the watch token has expired" : "the watch token is not valid",
            { reason: expired ? "WATCH_TOKEN_EXPIRED" : "WATCH_TOKEN_INVALID" },
          );
        },
      );
      const { account, kind, external_id, exp } = payload;
      const kindValue = kinds.get(String(kind));
      if (
        typeof account !== "string" ||
        typeof external_id !== "string" ||
        kindValue === undefined ||
        exp === undefined
      ) {
        throw new GatewayError("UNAUTHENTICATED", "the watch token is not valid", {
          reason: "WATCH_TOKEN_INVALID",
        });
      }
      return { account, kind: kindValue, externalId: external_id, expiresAtMs: exp * 1_000 };
    },
  };
}
