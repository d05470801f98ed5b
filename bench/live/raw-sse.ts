/**
 * The baseline for live updates: the least work that a Node process can do. Every watcher, on any
 * path, receives each body that is posted to `/publish` as a Server-Sent Event, which is encoded
 * once and written to each watcher.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const watchers = new Set<ServerResponse>();

const server = createServer((request, response) => {
  if (request.url !== "/publish") {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
    watchers.add(response);
    response.on("close", () => watchers.delete(response));
    return;
  }
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    const event = Buffer.from(`event: next\ndata: ${JSON.stringify(JSON.parse(body))}\n\n`);
    for (const watcher of watchers) watcher.write(event);
    response.writeHead(200, { "content-length": 0 }).end();
  });
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  console.log(`ready public=${url}`);
});
