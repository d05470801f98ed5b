import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { listen } from "../listen.ts";
import { between } from "../random.ts";
import { json } from "./scripted-server.ts";

/** How a request fails; `none` for success. */
export type Fault =
  | "none"
  | "resetInRequest"
  | "resetAfterRequest"
  | "closeAfterRequest"
  | "resetInAnswer"
  | "closeInAnswer"
  | "stall"
  | "stallInAnswer"
  | "errorObject";

export interface FaultServer {
  readonly url: string;
  /** By external_id: how many requests arrived, whole or in part. */
  readonly arrivals: Map<string, number>;
  /** By external_id: how often money moved, once per whole request that is not rejected. */
  readonly charges: Map<string, number>;
  close(): Promise<void>;
}

/**
 * A payments service on bare TCP that fails each request with the fault that `pick` returns. It
 * charges as soon as it has read a whole request, unless its answer is a rejection. Its answer
 * fails only after the charge, which is the worst case.
 */
export async function faultServer(
  random: () => number,
  pick: (externalId: string) => Fault,
): Promise<FaultServer> {
  const arrivals = new Map<string, number>();
  const charges = new Map<string, number>();
  const sockets = new Set<Socket>();

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    let received = "";
    let arrived: { externalId: string; fault: Fault; resetAt: number } | undefined;
    socket.setEncoding("latin1").on("data", (chunk) => {
      received += chunk;
      // The id is early in the request, in the query or the JSON, so a partial request has it too.
      const externalId = /"external_id":"([^"]+)"|external_id=([^ &]+)/.exec(received);
      if (!arrived && externalId) {
        const id = externalId[1] ?? externalId[2] ?? "";
        arrived = { externalId: id, fault: pick(id), resetAt: received.length };
        count(arrivals, id);
        const end = endOf(received);
        if (arrived.fault === "resetInRequest") {
          arrived.resetAt = between(random, externalId.index, Math.max(0, (end ?? 2e9) - 1));
        }
      }
      if (!arrived) return;
      const { fault, resetAt } = arrived;
      if (fault === "resetInRequest") {
        if (received.length >= resetAt) socket.resetAndDestroy();
        return;
      }
      const end = endOf(received);
      if (end === undefined || received.length < end) return;
      received = received.slice(end);
      respond(socket, arrived.externalId, fault);
      arrived = undefined;
    });
  });

  function respond(socket: Socket, externalId: string, fault: Fault): void {
    const rejected = fault === "errorObject";
    if (!rejected) count(charges, externalId);
    const body = JSON.stringify({ id: `p-${externalId}`, external_id: externalId });
    const whole = json(200, body);
    const part = whole.slice(0, between(random, 0, whole.length - 1));
    switch (fault) {
      case "none":
        return void socket.write(whole);
      case "resetInRequest":
      case "resetAfterRequest":
        return void socket.resetAndDestroy();
      case "closeAfterRequest":
        return void socket.end();
      case "resetInAnswer":
        return void socket.write(part, () => socket.resetAndDestroy());
      case "closeInAnswer":
        return void socket.end(part);
      case "stall":
        return;
      case "stallInAnswer":
        return void socket.write(part);
      case "errorObject":
        return void socket.write(json(200, '{"code":"insufficient_funds","type":"payment_error"}'));
    }
  }

  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    charges,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Length of the first request in `received`; undefined until its headers are complete. */
function endOf(received: string): number | undefined {
  const headers = received.indexOf("\r\n\r\n");
  if (headers < 0) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, headers))?.[1] ?? "0";
  return headers + 4 + Number(length);
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
