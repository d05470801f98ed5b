import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connectRedis } from "../../src/redis/connect.ts";
import { readyWithin } from "../../src/redis/ready.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { freePort, type RedisServer, startRedis, withoutRedis } from "./server.ts";

const fixture = (name: string) => new URL(`../fixtures/tls/${name}`, import.meta.url).pathname;

describe("a Redis that asks for certificates", { skip: withoutRedis }, () => {
  let server: RedisServer;
  let url: string;
  const directory = mkdtempSync(join(tmpdir(), "redis-tls-"));
  before(async () => {
    const port = await freePort();
    server = await startRedis([
      ["tls-port", String(port)],
      ["tls-cert-file", fixture("localhost.crt")],
      ["tls-key-file", fixture("localhost.key")],
      ["tls-ca-cert-file", fixture("ca-one.crt")],
      ["tls-auth-clients", "yes"],
    ]);
    url = `rediss://127.0.0.1:${port}`;
  });
  after(async () => {
    await server.close();
    rmSync(directory, { recursive: true });
  });

  const files = {
    caFile: fixture("localhost.crt"),
    certFile: fixture("client-one.crt"),
    keyFile: fixture("client-one.key"),
  };
  const state = async (tls: typeof files | { caFile?: string }) => {
    const errors: string[] = [];
    const redis = connectRedis(new Secret(url), ({ message }) => errors.push(message), {
      tls,
    });
    await readyWithin(500, redis.client);
    const { status } = redis.client;
    await redis.close();
    return { status, errors };
  };

  it("is used with a certificate that it accepts", async () => {
    assert.equal((await state(files)).status, "ready");
  });

  it("is not used without one, nor while its own is not trusted (control)", async () => {
    assert.notEqual((await state({ caFile: files.caFile })).status, "ready");
    const strange = await state({ ...files, caFile: fixture("ca-two.crt") });
    assert.notEqual(strange.status, "ready");
    assert.match(strange.errors.join(), /self-signed certificate/);
  });

  it("is reached once the file that names its authority is replaced", async (t) => {
    const caFile = join(directory, "ca.crt");
    copyFileSync(fixture("ca-two.crt"), caFile);
    const redis = connectRedis(new Secret(url), () => {}, { tls: { ...files, caFile } });
    t.after(() => redis.close());
    await readyWithin(300, redis.client);
    assert.notEqual(redis.client.status, "ready");
    copyFileSync(files.caFile, caFile);
    await readyWithin(timeoutMs, redis.client);
    assert.equal(redis.client.status, "ready");
  });

  it("keeps the state of a gateway", async () => {
    const gateway = await startTestGateway({
      REDIS_URL: url,
      REDIS_TLS_CA_FILE: files.caFile,
      REDIS_TLS_CERT_FILE: files.certFile,
      REDIS_TLS_KEY_FILE: files.keyFile,
    });
    const readiness = await (await fetch(`${gateway.adminUrl}/readyz`)).json();
    await gateway.stop();
    assert.equal(
      (readiness as { details: { redis: { status: string } } }).details.redis.status,
      "up",
    );
  });
});
