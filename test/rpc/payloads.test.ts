import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Identify } from "../../src/auth/identify.ts";
import { GatewayError } from "../../src/errors.ts";
import { defaultLimits } from "../../src/rpc/methods.ts";
import { ask } from "../ask.ts";
import { openIntake } from "../net/open-intake.ts";
import { until } from "../until.ts";
import { answers, getPaymentPath, http2Call, known, start } from "./start.ts";

/* `unary-path.test.ts` and `stream-path.test.ts` have compression and limits in every protocol. */
test("a message of more bytes than the default limit is refused", async () => {
  await using started = await start(answers);
  const statusOf = async (bytes: number) => {
    const message = JSON.stringify({ externalId: "x".repeat(bytes) });
    return (await started.post("GetPayment", message)).status;
  };
  const around = JSON.stringify({ externalId: "" }).length;
  assert.equal(await statusOf(defaultLimits.readMaxBytes - around), 200);
  assert.equal(await statusOf(defaultLimits.readMaxBytes - around + 1), 429);
});

test("a decompression bomb is cut at the limit, not unpacked", async () => {
  await using started = await start(answers);
  const bomb = gzipSync(Buffer.alloc(128 * 1024 * 1024, " "));
  const before = process.memoryUsage().rss;
  const refusals = Array.from({ length: 8 }, async () => {
    const answer = await started.post("GetPayment", bomb, { "content-encoding": "gzip" });
    const { code } = (await answer.json()) as { code: string };
    return [answer.status, code];
  });
  for (const refusal of await Promise.all(refusals)) {
    assert.deepEqual(refusal, [429, "resource_exhausted"]);
  }
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 256 * 1024 * 1024, `${grown} bytes more`);
});

test("compressed messages that come together take no more memory than they hold", async () => {
  // A quarter of it is for one connection.
  await using started = await start(answers, { intake: openIntake(4 * 1024 * 1024) });
  const session = http2.connect(started.url);
  const message = gzipSync('{"external_id":"order-1"}');
  const call = async () => {
    const stream = session.request(http2Call("GetPayment", { "content-encoding": "gzip" }));
    const [headers] = await once(stream.end(message).resume(), "response");
    return headers[":status"];
  };
  const statuses = await Promise.all(Array.from({ length: 100 }, call));
  session.destroy();
  assert.deepEqual(new Set(statuses), new Set([200]));
});

test("a body that nobody takes is let go of when its call is over", async () => {
  const intake = openIntake();
  const waiting: (() => void)[] = [];
  const identify: Identify = async ({ header }) => {
    if (header("authorization") === "later") await new Promise<void>((r) => waiting.push(r));
    throw new GatewayError("UNAUTHENTICATED", "nobody");
  };
  await using started = await start(answers, { intake, identify });
  const session = http2.connect(started.url);
  const body = JSON.stringify({ external_id: "x".repeat(5_000) });
  const byHttp2 = () => session.request(http2Call("GetPayment", { authorization: "later" }));
  // Refused behind its body, by each version of HTTP.
  const refused = byHttp2().end(body);
  const chunked = http.request(started.url + getPaymentPath, {
    method: "POST",
    headers: { authorization: "later", "content-type": "application/json" },
  });
  chunked.write(body);
  chunked.end();
  // Its client leaves before it is refused.
  const left = byHttp2().end(body);
  await until(() => waiting.length === 3 && intake.budget.bytes > 15_000);
  left.close(http2.constants.NGHTTP2_CANCEL);
  for (const go of waiting) go();
  const [response] = await once(chunked, "response");
  await Promise.all([once(refused.resume(), "close"), once(response.resume(), "close")]);
  await until(() => intake.budget.bytes === 0);
  session.destroy();
});

/* `unary-path.test.ts` and `stream-path.test.ts` send it as it is, by every protocol. */
test("JSON that is not UTF-8 is refused compressed and in an address too, and a U+FFFD in valid UTF-8 is kept", async () => {
  const ids: string[] = [];
  await using started = await start({
    async getPayment({ externalId }) {
      ids.push(externalId);
      return known;
    },
  });
  const path = `${getPaymentPath}?connect=v1&encoding=json`;
  const get = (query: string) => fetch(`${started.url}${path}&${query}`);
  const escaped = (json: Buffer) =>
    json.toString("latin1").replace(/[^ -~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  const ways: Record<string, (json: Buffer) => Promise<Response>> = {
    compressed: (json) =>
      started.post("GetPayment", gzipSync(json), { "content-encoding": "gzip" }),
    get: (json) => get(`message=${escaped(json)}`),
    "get in base64": (json) => get(`base64=1&message=${json.toString("base64url")}`),
  };
  for (const [bytes, id] of [
    ["\xff", undefined],
    ["\xc3(", undefined],
    ["\xed\xa0\x80", undefined],
    ["\xc3\xa9", "é"],
    ["\xef\xbf\xbd", "\ufffd"],
  ] as const) {
    for (const [name, send] of Object.entries(ways)) {
      const text = await (await send(Buffer.from(`{"external_id":"${bytes}"}`, "latin1"))).text();
      if (id === undefined) assert.match(text, /"invalid_argument".*UTF-8/, name);
      assert.deepEqual(ids.splice(0), id === undefined ? [] : [id], name);
    }
  }

  // Raw non-ASCII bytes in the address: fetch would percent-encode them.
  const raw = `${path}&message={"external_id":"\xc3\xa9"}`;
  assert.equal((await ask(started.url, { path: raw })).status, 400);
  assert.deepEqual(ids, []);
});
