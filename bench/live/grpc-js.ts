/**
 * The baseline for gRPC streams: a server with only grpc-js. Every WatchPayment call receives each
 * payment whose callback is posted to `/publish`.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const { pathname: root } = new URL("../..", import.meta.url);
const definition = loadSync("payments/v1/payment_service.proto", {
  ...{ includeDirs: [`${root}proto`, `${root}third_party`], keepCase: true, defaults: false },
});
const service = definition["payments.v1.PaymentService"] as grpc.ServiceDefinition;
const watchers = new Set<grpc.ServerWritableStream<unknown, unknown>>();
const server = new grpc.Server();
server.addService(service, {
  WatchPayment(call: grpc.ServerWritableStream<unknown, unknown>) {
    call.sendMetadata(new grpc.Metadata());
    watchers.add(call);
    call.on("cancelled", () => watchers.delete(call));
  },
});
const rpc = await new Promise<number>((resolve, reject) => {
  server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) reject(error);
    else resolve(port);
  });
});

const publisher = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    const { id, external_id, details, customer } = JSON.parse(body);
    const { created_at: _, ...texts } = details;
    const payment = {
      ...{ id, external_id, is_success: true, operation: "PAYMENT_OPERATION_PAYMENT", customer },
      details: { ...texts, status: "PAYMENT_STATUS_SUCCESS" },
    };
    const event = { cursor: id, external_id, final: true, payment };
    for (const watcher of watchers) watcher.write({ event });
    response.writeHead(200, { "content-length": 0 }).end();
  });
});
publisher.listen(0, "127.0.0.1", () => {
  const { port } = publisher.address() as AddressInfo;
  console.log(`ready public=http://127.0.0.1:${port} rpc=http://127.0.0.1:${rpc}`);
});
