import assert from "node:assert/strict";
import { test } from "node:test";
import { SignJWT } from "jose";
import { createWatchTokens, type WatchTokens } from "../../src/auth/watch-token.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";

const [old, next, strange] = ["old", "new", "strange"].map(
  (name) => new Secret(name.padEnd(32, "-secret")),
) as [Secret, Secret, Secret];

const grant = (expiresInMs = 60_000) => ({
  account: "shop",
  kind: EventKind.PAYMENT,
  externalId: "order-1",
  expiresAtMs: Date.now() + expiresInMs,
});

async function refusal(tokens: WatchTokens, token: string): Promise<string | undefined> {
  try {
    await tokens.verify(token);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.code, "UNAUTHENTICATED");
    return error.details.reason;
  }
}

test("a previous secret verifies tokens but never signs them", async () => {
  const tokens = createWatchTokens(next, [old]);
  const { merchants, watch } = await tokens.verify(await createWatchTokens(old).issue(grant()));
  assert.deepEqual(merchants, new Set(["shop"]));
  assert.deepEqual(watch, { kind: EventKind.PAYMENT, externalId: "order-1" });
  const issued = await tokens.issue(grant());
  assert.equal(await refusal(createWatchTokens(old), issued), "WATCH_TOKEN_INVALID");
  assert.equal(await refusal(createWatchTokens(next), issued), undefined);
});

test("tokens of a dropped secret and of an unknown secret are refused", async () => {
  const token = await createWatchTokens(old).issue(grant());
  assert.equal(await refusal(createWatchTokens(next), token), "WATCH_TOKEN_INVALID");
  const foreign = await createWatchTokens(strange).issue(grant());
  assert.equal(await refusal(createWatchTokens(next, [old]), foreign), "WATCH_TOKEN_INVALID");
});

test("tokens of a previous secret pass the same checks as those of the present one", async () => {
  const tokens = createWatchTokens(next, [strange, old]);
  const expired = await createWatchTokens(old).issue(grant(-60_000));
  assert.equal(await refusal(tokens, expired), "WATCH_TOKEN_EXPIRED");
  const key = new TextEncoder().encode(old.reveal());
  const signed = (audience: string, lifeSeconds: number) =>
    new SignJWT({ account: "shop", kind: "payment", external_id: "order-1" })
      .setProtectedHeader({ alg: "HS256" })
      .setAudience(audience)
      .setJti("j")
      .setIssuedAt()
      .setExpirationTime(`${lifeSeconds}s`)
      .sign(key);
  const audience = "payments-gateway/watch";
  assert.equal(await refusal(tokens, await signed(audience, 60)), undefined);
  assert.equal(await refusal(tokens, await signed("other", 60)), "WATCH_TOKEN_INVALID");
  assert.equal(await refusal(tokens, await signed(audience, 90_000)), "WATCH_TOKEN_INVALID");
});
