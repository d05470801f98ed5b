import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { serve } from "./serve.ts";

test("a client is served again after a body over 1 MiB, sent with its length or in chunks", async (t) => {
  const gateway = await serve(t);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const post = async (body: string, headers: Record<string, number> = {}) => {
    const request = http.request(gateway.url, {
      agent,
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
    });
    request.write(body);
    request.end();
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    return { status: response.statusCode, body: await text(response) };
  };
  const long = JSON.stringify({ query: "x".repeat(3 * 1024 * 1024) });
  for (const headers of [{ "content-length": long.length }, {}] as const) {
    for (let n = 0; n < 3; n++) assert.equal((await post(long, headers)).status, 413);
    const small = JSON.stringify({ query: "{ rateLimit { limit } }" });
    assert.deepEqual(await post(small), {
      status: 200,
      body: '{"data":{"rateLimit":{"limit":10}}}',
    });
  }
});
