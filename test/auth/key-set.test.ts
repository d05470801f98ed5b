import assert from "node:assert/strict";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { exportJWK, type JWK } from "jose";
import { fileKeySet, remoteKeySet } from "../../src/auth/key-set.ts";
import { GatewayError } from "../../src/errors.ts";
import { serve } from "../listen.ts";
import { keyFile, readerOf, scratch, signingKey, signToken } from "./issuer.ts";

const files = scratch();
const [first, second] = await Promise.all([signingKey("first"), signingKey("second")]);

/** An issuer that serves a key set over HTTP. The test may change the keys or take it down. */
async function startIssuer(t: TestContext, keys: JWK[]) {
  const state = { keys, down: false, fetches: 0 };
  const server = createServer((_, response) => {
    state.fetches++;
    if (state.down) return void response.writeHead(503).end();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ keys: state.keys }));
  });
  return Object.assign(state, { url: `${await serve(t, server)}/jwks.json` });
}

const pastCooldownMs = 30_001;
const fails = (error: unknown) => assert.fail(String(error));
const codeOf = (code: string) => (error: unknown) =>
  error instanceof GatewayError && error.code === code;

test("a key set is fetched once for many tokens, and an unknown kid does not fetch it again", async (t) => {
  const jwks = await startIssuer(t, [first.jwk]);
  const read = readerOf(remoteKeySet(jwks.url, fails));
  const tokens = await Promise.all(Array.from({ length: 20 }, () => signToken(first)));
  await Promise.all(tokens.map(read));
  for (let n = 0; n < 5; n++) {
    await assert.rejects(read(await signToken(second)), codeOf("UNAUTHENTICATED"));
  }
  assert.equal(jwks.fetches, 1);
});

test("a key that the issuer adds is accepted, and one that it removes is refused", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const jwks = await startIssuer(t, [first.jwk]);
  const read = readerOf(remoteKeySet(jwks.url, fails));
  const used = await signToken(first);
  await read(used);
  jwks.keys = [second.jwk];
  t.mock.timers.tick(pastCooldownMs);
  await read(await signToken(second));
  await assert.rejects(read(used), codeOf("UNAUTHENTICATED"));
});

test("if the issuer is unreachable, the last key set stays in use, and no token is invalid", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const jwks = await startIssuer(t, [first.jwk]);
  jwks.down = true;
  const problems: unknown[] = [];
  const read = readerOf(remoteKeySet(jwks.url, (error) => problems.push(error)));
  await assert.rejects(read(await signToken(first)), codeOf("UNAVAILABLE"));
  assert.equal(problems.length, 1);
  jwks.down = false;
  await read(await signToken(first));
  jwks.down = true;
  t.mock.timers.tick(600_000);
  await read(await signToken(first));
  await assert.rejects(read(await signToken(second)), codeOf("UNAVAILABLE"));
});

test("a key set that is too old is not used, also not for a token that was read before", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const jwks = await startIssuer(t, [first.jwk]);
  const staleMs = 3_600_000;
  const read = readerOf(remoteKeySet(jwks.url, () => {}));
  const token = await signToken(first, { exp: Math.floor(Date.now() / 1_000) + 2 * 3_600 });
  await read(token);
  jwks.down = true;
  t.mock.timers.tick(staleMs - 1);
  await read(token);
  t.mock.timers.tick(1);
  await assert.rejects(read(token), codeOf("UNAVAILABLE"));
  jwks.down = false;
  await read(token);
});

test("a file of keys is read again when it changes", async (t) => {
  const text = (...keys: JWK[]) => JSON.stringify({ keys });
  const reloaded = Promise.withResolvers<void>();
  const path = files.write("jwks", text(first.jwk));
  const keySet = fileKeySet(keyFile(path, reloaded.resolve, reloaded.reject));
  t.after(() => keySet.close());
  const read = readerOf(keySet);
  const used = await signToken(first);
  await read(used);
  await assert.rejects(read(await signToken(second)), codeOf("UNAUTHENTICATED"));
  files.write("jwks", text(second.jwk));
  await reloaded.promise;
  await read(await signToken(second));
  await assert.rejects(read(used), codeOf("UNAUTHENTICATED"));
});

test("a file that is not a key set or holds a secret key is refused without quoting it", async () => {
  const secret = { ...(await exportJWK(first.privateKey)), kid: "first" };
  const open = (name: string, text: string) => () => fileKeySet(keyFile(files.write(name, text)));
  assert.throws(open("none", "{"), /not a JSON Web Key Set/);
  assert.throws(open("list", "[]"), /not a JSON Web Key Set/);
  assert.throws(open("secret", JSON.stringify({ keys: [secret] })), (error: Error) => {
    assert.match(error.message, /the key "first" is secret/);
    return !error.message.includes(secret.d ?? "");
  });
  assert.throws(open("hmac", '{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"h"}]}'), /"h" is secret/);
});

for (const status of [200, 503]) {
  test(`an answer without end is not read to its end (status ${status})`, async (t) => {
    let sentBytes = 0;
    const cut = Promise.withResolvers<void>();
    const server = createServer((_, response) => {
      response.writeHead(status, { "content-type": "application/json" });
      const chunk = Buffer.alloc(64 * 1024, " ");
      const write = () => {
        while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
      };
      response.on("drain", write).on("close", cut.resolve);
      write();
    });
    const url = `${await serve(t, server)}/jwks.json`;
    const problems: unknown[] = [];
    const onProblem = (error: unknown) => problems.push(error);
    const read = readerOf(remoteKeySet(url, onProblem, 60_000));
    await assert.rejects(read(await signToken(first)), codeOf("UNAVAILABLE"));
    await cut.promise;
    // The buffers of both sockets hold some of it.
    assert.ok(sentBytes < 24 * 1024 * 1024, `${sentBytes}`);
    assert.match(String(problems[0]), status === 200 ? /over 1048576 bytes/ : /^HTTP 503$/);
  });
}

test("why a key set cannot be fetched is said without quoting the answer", async (t) => {
  const reasonOf = async (listener: RequestListener, timeoutMs = 60_000) => {
    const url = await serve(t, createServer(listener));
    const { promise: reason, resolve: onProblem } = Promise.withResolvers<string>();
    const read = readerOf(remoteKeySet(url, onProblem, timeoutMs));
    await assert.rejects(read(await signToken(first)), codeOf("UNAVAILABLE"));
    return reason;
  };
  const answers = (text: string) => (_: unknown, response: ServerResponse) => response.end(text);
  assert.equal(await reasonOf(answers("canary")), "the answer is not a JSON Web Key Set");
  assert.equal(await reasonOf(answers("{}")), "the answer is not a JSON Web Key Set");
  const moved: RequestListener = (_, response) => response.writeHead(302, { location: "/" }).end();
  assert.equal(await reasonOf(moved), "HTTP 302");
  assert.equal(await reasonOf(() => {}, 20), "no answer in time");
  assert.match(await reasonOf(({ socket }) => socket.destroy()), /^the connection was closed/);
});
