/**
 * A service that receives signed callbacks, such as `payments-gateway listen --forward-to` sends.
 *
 *   WEBHOOK_PASSWORD=sandbox-password node examples/webhook-receiver.ts [port]
 */
import { createServer } from "node:http";
import { signatureHeader, verifyCallback } from "@payments-gateway/client/webhook";

const { WEBHOOK_PASSWORD: password } = process.env;
if (!password) throw new Error("WEBHOOK_PASSWORD is not set");
const [port = "3000"] = process.argv.slice(2);
const maxBytes = 1024 * 1024;

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBytes) return void response.writeHead(413).end();
    chunks.push(chunk);
  }
  // The signature covers the raw bytes: verify it before parsing the body.
  const body = Buffer.concat(chunks);
  const [header, ...more] = request.headersDistinct[signatureHeader] ?? [];
  if (more.length > 0 || !verifyCallback(body, header, password)) {
    return void response.writeHead(401).end();
  }
  const { external_id, details, status } = JSON.parse(body.toString());
  console.log(`${external_id}: ${details?.status ?? status}`);
  // Answer 200 only after processing: after any other status, the callback is sent again.
  response.writeHead(200).end();
});
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  console.log(
    `listening on http://127.0.0.1:${typeof address === "object" ? address?.port : port}`,
  );
});
