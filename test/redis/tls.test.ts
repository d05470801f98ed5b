import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import type { Redis } from "ioredis";
import { readyWithin } from "../../src/redis/ready-within.ts";
import { paymentTold, sendCallback } from "../gateway/callers.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { tlsFile } from "../tls.ts";
import { timeoutMs, until } from "../until.ts";
import { startSentinels } from "./sentinel.ts";
import {
  freePort,
  inSync,
  type RedisServer,
  type Settings,
  startRedis,
  withoutRedis,
} from "./server.ts";
import { byTls, connecting } from "./suite.ts";

type Readiness = { details: { redis: { status: string } } };

const files = {
  caFile: tlsFile("localhost.crt"),
  certFile: tlsFile("client-one.crt"),
  keyFile: tlsFile("client-one.key"),
};

/** A gateway whose state is there. */
const startOn = (url: string) =>
  startTestGateway({
    REDIS_URL: url,
    REDIS_TLS_CA_FILE: files.caFile,
    REDIS_TLS_CERT_FILE: files.certFile,
    REDIS_TLS_KEY_FILE: files.keyFile,
  });

async function statusIn({ adminUrl }: { readonly adminUrl: string }): Promise<string> {
  const ready = await (await fetch(`${adminUrl}/readyz`)).json();
  return (ready as Readiness).details.redis.status;
}

describe("a Redis that asks for certificates", { skip: withoutRedis }, () => {
  let server: RedisServer;
  let url: string;
  before(async () => {
    const port = await freePort();
    server = await startRedis(byTls(port, true));
    url = `rediss://127.0.0.1:${port}`;
  });
  after(() => server.close());

  it("is not used while its own is not trusted, and reached once the file that names its authority is replaced", async (t) => {
    const caFile = join(directory(t), "ca.crt");
    copyFileSync(tlsFile("ca-two.crt"), caFile);
    const redis = connecting(t, url, { tls: { ...files, caFile } });
    await readyWithin(300, redis.client);
    assert.notEqual(redis.client.status, "ready");
    assert.match(redis.errors.join(), /self-signed certificate/);
    copyFileSync(files.caFile, caFile);
    await readyWithin(timeoutMs, redis.client);
    assert.equal(redis.client.status, "ready");
  });
});

describe("Sentinels and servers that ask for certificates", { skip: withoutRedis }, () => {
  const authorities = join(directory({ after }), "authorities.crt");
  const servers: RedisServer[] = [];
  let url: string;
  let tlsPorts: number[];

  /** All connections between the servers are by TLS, too. */
  const tlsOf = (port: number): Settings => [
    ...byTls(port, true, authorities),
    ["tls-replication", "yes"],
  ];
  before(async () => {
    writeFileSync(
      authorities,
      ["ca-one.crt", "localhost.crt"].map((name) => readFileSync(tlsFile(name))).join(""),
    );
    tlsPorts = [await freePort(), await freePort(), await freePort()];
    const [first = 0, second = 0, third = 0] = tlsPorts;
    servers.push(await startRedis([...tlsOf(first), ["repl-diskless-sync-delay", "0"]]));
    const replica = await startRedis([...tlsOf(second), ["replicaof", `127.0.0.1 ${first}`]]);
    servers.push(replica);
    await inSync(replica);
    const watching = { count: 1, replicas: 1, settings: tlsOf(third) };
    servers.push(...(await startSentinels(first, watching)));
    url = `rediss+sentinel://127.0.0.1:${third}/payments`;
  });
  after(() => Promise.all(servers.map((server) => server.close())));

  it("keep what a gateway acknowledges, on every replica that could be promoted", async () => {
    const gateway = await startOn(url);
    try {
      await sendCallback(gateway, paymentTold("order-1"));
      const keys = (await servers[1]?.command("KEYS", "*order-1*")) as string[];
      assert.ok(keys.length > 0, "the replica has it");
      assert.equal(await statusIn(gateway), "up");
    } finally {
      await gateway.stop();
    }
  });

  it("are used with one, and the next primary too", async (t) => {
    const redis = connecting(t, url, { tls: files });
    await readyWithin(timeoutMs, redis.client);
    await redis.client.set("key", "kept");
    await until(async () => (await servers[1]?.command("GET", "key")) === "kept");
    await servers[0]?.kill();
    await until(async () => {
      const { stream } = redis.client as Redis;
      assert.equal((stream as TLSSocket).remotePort, tlsPorts[1]);
      assert.equal((stream as TLSSocket).authorized, true);
      assert.equal(await redis.client.get("key"), "kept");
      return true;
    });
  });
});
