/**
 * The baseline for the gateway: the least work with which a Node process can forward a read, with
 * node:http and undici. `node bench/calls/proxy.ts <upstream>` prints its URL.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

const pool = new Pool(process.argv[2] ?? "", { connections: 64, pipelining: 1 });
const headers = { accept: "application/json", authorization: "Basic bWVyY2hhbnQ6c2VjcmV0" };

const server = createServer(async (request, response) => {
  const answer = await pool.request({ method: "GET", path: request.url ?? "", headers });
  const text = await answer.body.text();
  response.writeHead(answer.statusCode, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
});
server.listen(0, "127.0.0.1", () => {
  console.log(`ready proxy=http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
