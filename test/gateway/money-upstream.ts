import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { sign } from "../../src/wire/signature.ts";
import { freePort } from "../redis/server.ts";

/** What goes wrong with a payment, told by how its external_id begins. */
const moneyFaults = [
  "none",
  "resetBefore",
  "resetAfter",
  "stall",
  "html502",
  "truncated",
  "errorObject",
  "okRejected",
  "okOpen",
  "okOpenUncharged",
  "tooMany",
] as const;
export type MoneyFault = (typeof moneyFaults)[number];

export interface MoneyUpstream {
  readonly url: string;
  /** By external_id: requests for a payment that began to arrive, and those that charged. */
  readonly arrivals: Map<string, number>;
  readonly charges: Map<string, number>;
  /** The same in their order, with when each was read, by `performance.now()`. */
  readonly requests: { readonly externalId: string; readonly atMs: number; charged: boolean }[];
  /** While it is down, it answers nothing but what payments are told to get. */
  down: boolean;
  /** Where callbacks go instead, as by a proxy in front of the gateways. */
  callbackTo: string | undefined;
  /** How long an answer takes, in milliseconds. */
  answerMs: number;
  /** Holds answers to charges back until what it returns is called. */
  hold(): () => void;
  /** Refuses connections from now on, and cuts those that there are. */
  leave(): Promise<void>;
  /** Listens again, at the same place. */
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A payments service that charges as soon as it has read a request whole, unless it rejects it, and
 * whatever happens to the answer: the worst that can happen. It sends no callback by itself.
 */
export async function startMoneyUpstream(password: string): Promise<MoneyUpstream> {
  const arrivals = new Map<string, number>();
  const charges = new Map<string, number>();
  const requests: MoneyUpstream["requests"] = [];
  const callbackUrls = new Map<string, string>();
  let held: Promise<void> | undefined;

  const server = createServer(async (request, response) => {
    if (request.url?.endsWith("/payments/v1/new")) return await charge(request, response);
    if (upstream.down) return void request.socket.destroy();
    if (request.url?.endsWith("/callback/resend")) return await resend(request, response);
    notFound(response);
  });

  async function charge(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const body = await textOf(request);
    const { external_id: externalId, callback_url: url } = JSON.parse(body) as Record<
      string,
      string
    >;
    const id = externalId ?? "";
    const fault = id.split("-")[0] as MoneyFault;
    count(arrivals, id);
    const arrived = { externalId: id, atMs: performance.now(), charged: false };
    requests.push(arrived);
    if (fault === "resetBefore") return void socket.resetAndDestroy();
    if (fault === "errorObject") {
      return end(response, 402, '{"code":"insufficient_funds","type":"payment_error"}');
    }
    if (fault === "tooMany") {
      return end(response, 429, '{"code":"too_many_requests","type":"api_error"}');
    }
    if (fault === "okRejected") {
      const told = { code: "insufficient_funds", type: "payment_error", error_id: `e-${id}` };
      return end(response, 200, JSON.stringify(told));
    }
    // What the service says of its own failures leaves open whether it charged.
    const ownFailure = JSON.stringify({
      ...{ code: ownFailures[id.length % ownFailures.length], type: "api_error" },
      message: "Something went wrong",
    });
    if (fault === "okOpenUncharged") return end(response, 200, ownFailure);
    count(charges, id);
    arrived.charged = true;
    callbackUrls.set(id, url ?? "");
    await held;
    if (upstream.answerMs > 0) await delay(upstream.answerMs, undefined, { ref: false });
    const paid = paymentOf(id);
    if (fault === "resetAfter") return void socket.resetAndDestroy();
    if (fault === "stall") return;
    if (fault === "html502") return end(response, 502, "<html>Bad Gateway</html>");
    if (fault === "okOpen") return end(response, 200, ownFailure);
    if (fault === "truncated") return end(response, 200, paid.slice(0, -20));
    end(response, 200, paid);
  }

  async function resend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { external_id: id = "" } = JSON.parse(await textOf(request)) as Record<string, string>;
    const url = callbackUrls.get(id);
    if (!url) return notFound(response);
    end(response, 200, "{}");
    const body = new TextEncoder().encode(paymentOf(id));
    const headers = { "x-service-signature": sign(body, password) };
    const { origin, pathname } = new URL(url);
    await fetch(`${upstream.callbackTo ?? origin}${pathname}`, {
      method: "POST",
      headers,
      body,
    }).then(
      (answer) => answer.arrayBuffer(),
      () => {},
    );
  }

  // Not one that the system gives to another while it is left.
  const port = await freePort();
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const leave = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  const upstream: MoneyUpstream = {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    charges,
    requests,
    down: false,
    callbackTo: undefined,
    answerMs: 0,
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = undefined;
        resolve();
      };
    },
    leave,
    async comeBack() {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    close: leave,
  };
  return upstream;
}

/** Error codes that leave open what became of a call. */
const ownFailures = ["internal_error", "timeout", "request_failed"] as const;

function paymentOf(externalId: string): string {
  return JSON.stringify({
    external_id: externalId,
    operation: "payment",
    is_success: true,
    details: {
      payment_id: `p-${externalId}`,
      status: "success",
      status_code: "transaction_successful",
    },
  });
}

function notFound(response: ServerResponse): void {
  end(response, 404, '{"code":"transaction_not_found","type":"invalid_request_error"}');
}

function end(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    "content-type": "application/json",
    "x-ratelimit-limit": 2_000,
    "x-ratelimit-remaining": 2_000,
    "x-ratelimit-reset": 0,
  });
  response.end(body);
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
