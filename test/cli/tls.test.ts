import assert from "node:assert/strict";
import { request } from "node:http";
import { createServer } from "node:https";
import { describe, type TestContext, test } from "node:test";
import type { TlsOptions } from "node:tls";
import { freePorts } from "../gateway/spawn.ts";
import { listen } from "../listen.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { freePort, startRedis, withoutRedis } from "../redis/server.ts";
import { byTls } from "../redis/suite.ts";
import { startTestGateway } from "../start.ts";
import { identityOf, tlsFile, tlsText } from "../tls.ts";
import { run } from "./resident.ts";
import { placesOf, run as runAlone } from "./run.ts";

/** What a check of `check` says in this environment. */
async function found(name: string, env: Record<string, string>, runIn = run) {
  const { out } = await runIn(["check", "--json"], { env: { ...freePorts, ...env } });
  const { checks } = JSON.parse(out) as {
    checks: { check: string; message: string; advice?: string }[];
  };
  return checks.find(({ check }) => check === name) ?? assert.fail(out);
}

/** A server's options: it takes only clients of the first authority. */
const mutual = { ...identityOf("localhost"), ca: tlsText("ca-one.crt"), requestCert: true };

const authority = { PAYMENTS_GATEWAY_TLS_CA_FILE: tlsFile("localhost.crt") };
const certificate = (client: string) => ({
  PAYMENTS_GATEWAY_TLS_CERT_FILE: tlsFile(`${client}.crt`),
  PAYMENTS_GATEWAY_TLS_KEY_FILE: tlsFile(`${client}.key`),
});

describe("commands at a gateway that asks for client certificates", () => {
  const gateway = ofSuite(() =>
    startTestGateway({
      TLS_CERT_FILE: tlsFile("localhost.crt"),
      TLS_KEY_FILE: tlsFile("localhost.key"),
      TLS_CLIENT_CA_FILE: tlsFile("ca-one.crt"),
    }),
  );

  const known = () => ({ ...placesOf(gateway), ...authority, ...certificate("client-one") });

  test("show theirs: trigger, listen, payments and token", async () => {
    const ran = async (...args: string[]) => {
      const { code, out, err } = await run(args, { env: known() });
      assert.equal(code, 0, err);
      return out;
    };
    await ran("trigger", "payment.success", "--external-id", "tls-1");
    const listen = ["listen", "--json", "--after", "earliest", "--limit", "1"];
    assert.equal(JSON.parse(await ran(...listen)).event.external_id, "tls-1");
    assert.match(await ran("payments"), /PAID {2}tls-1$/m);
    assert.match(await ran("token", "--external-id", "tls-1"), /\w/);
  });

  const { PAYMENTS_GATEWAY_TLS_CERT_FILE } = certificate("client-one");
  const { PAYMENTS_GATEWAY_TLS_KEY_FILE } = certificate("client-two");
  for (const [what, env, code, words] of [
    ["without its authority", {}, 69, /its certificate is of an authority that is not trusted/],
    ["without a certificate", authority, 69, /it (asks|may ask) for a client certificate/],
    ["with a stranger's", { ...authority, ...certificate("client-two") }, 69, /./],
    [
      "with a certificate without its key",
      { ...authority, PAYMENTS_GATEWAY_TLS_CERT_FILE },
      64,
      /PAYMENTS_GATEWAY_TLS_KEY_FILE is missing/,
    ],
    [
      "with another's key",
      { ...authority, PAYMENTS_GATEWAY_TLS_CERT_FILE, PAYMENTS_GATEWAY_TLS_KEY_FILE },
      64,
      /cannot be used \(ERR_OSSL_X509_KEY_VALUES_MISMATCH\)/,
    ],
    [
      "with a missing file",
      { PAYMENTS_GATEWAY_TLS_CA_FILE: "/nowhere.crt" },
      64,
      /\/nowhere.crt .*cannot be used \(ENOENT\)/,
    ],
  ] as const) {
    test(`${what} say what is wrong, and end with ${code}`, async () => {
      const ran = await run(["payments"], { env: { ...placesOf(gateway), ...env } });
      assert.equal(ran.code, code, ran.err);
      assert.match(ran.err, words);
    });
  }

  test("story shows it to a proxy in front of the admin listener", async (t) => {
    const proxy = await serve(t, mutual, gateway.adminUrl);
    const story = (env: Record<string, string>) =>
      run(["story", "nothing"], { env: { ...env, PAYMENTS_GATEWAY_ADMIN_URL: proxy } });
    const direct = await run(["story", "nothing"], { env: placesOf(gateway) });
    assert.deepEqual(await story(known()), direct);
    const without = await story(authority);
    assert.equal(without.code, 69);
    assert.match(without.err, /it (asks|may ask) for a client certificate/);
  });
});

test("check says what is wrong with the TLS of the payments service", async (t) => {
  const upstream = async (options: TlsOptions, trusted: string) => {
    const env = {
      ...{ UPSTREAM_URL: await serve(t, options), UPSTREAM_LOGIN: "a", UPSTREAM_PASSWORD: "b" },
      ...{ AUTH_MODE: "none", NODE_EXTRA_CA_CERTS: tlsFile(`${trusted}.crt`) },
    };
    // Node reads the variable once, when a process starts.
    return (await found("upstream default", env, runAlone)).message;
  };
  const of = (name: string) => upstream(identityOf(name), name);
  assert.match(await of("expired"), /reached: its certificate has expired \(CERT_HAS_EXPIRED\)$/);
  assert.match(await of("elsewhere"), /reached: its certificate is for another name/);
  assert.match(
    await upstream(identityOf("localhost"), "ca-one"),
    /reached: its certificate is of an authority that is not trusted here/,
  );
  assert.match(await upstream(mutual, "localhost"), /reached: it asks for a client certificate/);
  const older = { ...mutual, maxVersion: "TLSv1.2" } as const;
  assert.match(await upstream(older, "localhost"), /it may ask for a client certificate/);
  assert.match(await of("localhost"), /answers, but not as the payments service does/);
});

test("check says what is wrong with the TLS of Redis", { skip: withoutRedis }, async (t) => {
  const port = await freePort();
  closing(t, await startRedis(byTls(port, true)));
  const redis = (client: Record<string, string>, url = `rediss://127.0.0.1:${port}`) =>
    found("redis", { REDIS_URL: url, ...client });
  const trusting = { REDIS_TLS_CA_FILE: tlsFile("localhost.crt") };
  const of = (client: string) => ({
    ...trusting,
    REDIS_TLS_CERT_FILE: tlsFile(`${client}.crt`),
    REDIS_TLS_KEY_FILE: tlsFile(`${client}.key`),
  });
  const untrusted = await redis({});
  assert.match(untrusted.message, /of an authority that is not trusted here/);
  assert.match(untrusted.advice ?? "", /^REDIS_TLS_CA_FILE names the authorities/);
  assert.match((await redis(trusting)).message, /it asks for a client certificate/);
  const sentinels = `rediss+sentinel://127.0.0.1:${port}/payments`;
  const bySentinel = await redis(trusting, sentinels);
  assert.match(bySentinel.message, /it asks for a client certificate/);
  const strange = await redis(of("client-two"));
  assert.match(strange.message, /it does not accept the certificate that it was shown/);
  assert.match((await redis(of("client-one"))).message, /^connected/);
});

/** An https server that answers an empty object, or passes requests on. @returns its URL */
async function serve(t: TestContext, options: TlsOptions, target?: string): Promise<string> {
  const server = createServer(options, (incoming, response) => {
    if (target === undefined) return response.end("{}");
    const { method, url, headers } = incoming;
    const host = new URL(target).host;
    const passed = request(target + url, { method, headers: { ...headers, host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(passed);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${await listen(server)}`;
}
