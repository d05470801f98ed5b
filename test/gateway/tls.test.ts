import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import net, { type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, it, test } from "node:test";
import tls from "node:tls";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import grpc from "@grpc/grpc-js";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
} from "../../src/gen/grpc/health/v1/health_pb.ts";
import { scratch } from "../auth/issuer.ts";
import { logRecords } from "../log-records.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { askByGrpcJs, grpcJsClient } from "../rpc/start.ts";
import { startTestGateway } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { identityOf, tlsText } from "../tls.ts";
import { until } from "../until.ts";

const files = scratch();
const cert = (name: string) => tlsText(`${name}.crt`);
const key = (name: string) => tlsText(`${name}.key`);

function env(server = "localhost") {
  return {
    TLS_CERT_FILE: files.write("cert", cert(server)),
    TLS_KEY_FILE: files.write("key", key(server)),
  };
}

const mutual = (authority: string) => ({
  ...env(),
  TLS_CLIENT_CA_FILE: files.write("ca", cert(authority)),
});

type Client = { cert: string; key: string } | undefined;

/** By client: calls the gateway's health check and resolves with the status. */
const clients: Record<string, (url: string, client: Client) => Promise<unknown>> = {
  "grpc-js": async (url, client) => {
    const own = client ? [Buffer.from(client.key), Buffer.from(client.cert)] : [];
    const credentials = grpc.credentials.createSsl(Buffer.from(cert("localhost")), ...own);
    const channel = grpcJsClient(Health, Number(new URL(url).port), {}, credentials);
    const request = create(HealthCheckRequestSchema);
    const answer = askByGrpcJs(channel, "check", request).finally(() => channel.close());
    return ((await answer) as HealthCheckResponse).status;
  },
  ...Object.fromEntries(
    (["1.1", "2"] as const).map((httpVersion) => [
      `connect-node over HTTP/${httpVersion}`,
      async (url: string, client: Client) => {
        const nodeOptions = { ca: cert("localhost"), ...client };
        const transport = createConnectTransport({ baseUrl: url, httpVersion, nodeOptions });
        return (await createClient(Health, transport).check({})).status;
      },
    ]),
  ),
};

describe("a client", () => {
  const open = ofSuite(() => startTestGateway(env()));
  const strict = ofSuite(() => startTestGateway(mutual("ca-one")));

  for (const [name, check] of Object.entries(clients)) {
    it(`${name} needs no certificate with TLS, and one of the authority's with mTLS`, async () => {
      assert.equal(await check(open.rpcUrl, undefined), 1);
      assert.equal(await check(strict.rpcUrl, identityOf("client-one")), 1);
      await assert.rejects(check(strict.rpcUrl, identityOf("client-two")));
      await assert.rejects(check(strict.rpcUrl, undefined));
    });
  }
});

/** Resolves when the server presents this certificate. */
async function shown(url: string, name: string): Promise<void> {
  const wanted = cert(name).replace(/\s|-----[^-]+-----/g, "");
  await until(async () => {
    const socket = await handshake(url, {});
    const { raw } = socket.getPeerCertificate();
    socket.destroy();
    return wanted === raw.toString("base64");
  });
}

/** When the certificate in use expires, from the metrics; undefined if they do not report it. */
async function expiryOf(adminUrl: string): Promise<Date | undefined> {
  const { value } = await scrapeOf({ adminUrl });
  const seconds = value("tls_certificate_expiry_timestamp_seconds", {});
  return seconds === undefined ? undefined : new Date(seconds * 1_000);
}

const endOf = (name: string) => new X509Certificate(cert(name)).validToDate;

async function handshake(url: string, options: tls.ConnectionOptions): Promise<tls.TLSSocket> {
  const { hostname: host, port } = new URL(url);
  const socket = tls.connect({ host, port: Number(port), rejectUnauthorized: false, ...options });
  await once(socket, "secureConnect");
  return socket;
}

test("new connections get a renewed certificate, open ones continue, and an invalid key is logged", async (t) => {
  const told = logRecords("error");
  const gateway = closing(t, await startTestGateway(env(), {}, told.log));
  const transport = createGrpcTransport({
    baseUrl: gateway.rpcUrl,
    nodeOptions: { ca: cert("localhost") },
  });
  const old = createClient(Health, transport);
  const watch = old.watch({})[Symbol.asyncIterator]();
  assert.equal((await watch.next()).value?.status, 1);
  assert.deepEqual(await expiryOf(gateway.adminUrl), endOf("localhost"));
  assert.notDeepEqual(endOf("renewed"), endOf("localhost"));

  files.write("cert", cert("renewed"));
  files.write("key", "broken");
  await until(() => told.records.length > 0);
  const [{ msg, reason } = {}] = told.records;
  assert.match(`${msg}`, /cannot use a changed file/);
  assert.match(`${reason}`, /^TLS_KEY_FILE: is not the PEM key/);
  await shown(gateway.rpcUrl, "localhost");
  assert.deepEqual(await expiryOf(gateway.adminUrl), endOf("localhost"));

  env("renewed");
  await shown(gateway.rpcUrl, "renewed");
  assert.deepEqual(await expiryOf(gateway.adminUrl), endOf("renewed"));
  assert.doesNotMatch(JSON.stringify(told.records), /PRIVATE KEY/);
  assert.equal((await old.check({})).status, 1);
  await watch.return?.();
});

test("the log says why a client's handshake failed, and nothing of one that just leaves", async (t) => {
  const { log, records } = logRecords("warn");
  const gateway = closing(t, await startTestGateway(mutual("ca-one"), {}, log));
  records.length = 0;
  const { hostname: host, port } = new URL(gateway.rpcUrl);
  const connect = (options: tls.ConnectionOptions) =>
    tls.connect({ host, port: Number(port), ca: cert("localhost"), ...options });
  const clients: Array<[sent: () => Socket, fault?: RegExp]> = [
    [() => net.connect(Number(port), host).end()],
    [() => connect({}), /^it showed no certificate \(/],
    [() => connect(identityOf("client-two")), /^its certificate is of an authority that is not/],
    [
      () => net.connect(Number(port), host).end("GET / HTTP/1.1\r\n\r\n"),
      /^it speaks HTTP without TLS \(ERR_SSL_HTTP_REQUEST\)$/,
    ],
  ];
  for (const [sent, fault] of clients) {
    const socket = sent().on("error", () => {});
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    if (fault === undefined) continue;
    await until(() => records.length > 0);
    const [record = {}, ...more] = records.splice(0);
    assert.equal(record.msg, "a client could not connect: its TLS handshake failed");
    assert.match(`${record.fault}`, fault);
    assert.equal(record.address ?? host, host);
    assert.deepEqual(more, []);
  }
});

test("a removed client authority is no longer trusted, not even in a resumed session", async (t) => {
  const gateway = closing(t, await startTestGateway(mutual("ca-one")));
  const one = identityOf("client-one");
  const request =
    "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n" +
    "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
  /** The server's response, the session to resume, and whether this one was resumed. */
  const ask = async (options: tls.ConnectionOptions) => {
    const socket = await handshake(gateway.rpcUrl, { maxVersion: "TLSv1.3", ...options });
    const resumed = socket.isSessionReused();
    let session: Buffer | undefined;
    socket.on("session", (ticket) => {
      session = ticket;
    });
    socket.write(request);
    const answer = await text(socket).catch((error: Error) => error.message);
    return { answer, session, resumed };
  };
  const before = await ask(one);
  assert.match(before.answer, /SERVING/);
  assert.ok(before.session);
  const again = await ask({ ...one, session: before.session });
  assert.match(again.answer, /SERVING/);
  assert.equal(again.resumed, true, "else the check below checks nothing");

  files.write("ca", cert("ca-two"));
  await until(async () => (await ask(identityOf("client-two"))).answer.includes("SERVING"));
  const session = again.session ?? before.session;
  assert.doesNotMatch((await ask({ ...one, session })).answer, /SERVING/);
  assert.doesNotMatch((await ask(one)).answer, /SERVING/);
});

test("without TLS the metrics report no certificate expiry", async (t) => {
  const gateway = closing(t, await startTestGateway());
  assert.equal(await expiryOf(gateway.adminUrl), undefined);
});
