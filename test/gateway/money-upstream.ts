import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { sign } from "../../src/wire/signature.ts";
import { listen } from "../listen.ts";

/**
 * What goes wrong with a payment: the part of its external_id before the first `-`. With `once` a
 * second payment is refused: the service says that the external_id is paid.
 */
type MoneyFault = "none" | "once" | "resetAfter";

export type MoneyUpstream = Awaited<ReturnType<typeof startMoneyUpstream>>;

/**
 * A payments service that charges as soon as it has read a whole request, whatever happens to the
 * answer. It sends a callback only when asked to resend it, or by `callBack`. Requests beyond a token
 * bucket of one second's requests are answered 429.
 */
export async function startMoneyUpstream(password: string, perSecond = 2_000) {
  /** Number of payment requests that were read, and of those that charged, by external_id. */
  const arrivals = new Map<string, number>();
  const charges = new Map<string, number>();
  /** The same requests in order. `atMs` is when each was read, by `performance.now()`. */
  const requests: { readonly externalId: string; readonly atMs: number; charged: boolean }[] = [];
  const callbackUrls = new Map<string, string>();
  /** Requests within the limit and beyond it, until somebody sets them to 0. */
  const counts = { accepted: 0, rejected: 0 };
  let held: Promise<void> | undefined;
  let tokens = perSecond;
  let atMs = performance.now();

  const server = createServer(async (request, response) => {
    const nowMs = performance.now();
    tokens = Math.min(perSecond, tokens + ((nowMs - atMs) / 1_000) * perSecond);
    atMs = nowMs;
    const isWithin = tokens >= 1;
    if (isWithin) tokens--;
    counts[isWithin ? "accepted" : "rejected"]++;
    response.setHeader("x-ratelimit-limit", perSecond);
    response.setHeader("x-ratelimit-remaining", Math.floor(tokens));
    response.setHeader("x-ratelimit-reset", Math.ceil((perSecond - tokens) / perSecond));
    if (!isWithin) {
      request.resume();
      return end(response, 429, '{"code":"too_many_requests","type":"api_error"}');
    }
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
    if (fault === "once" && charges.has(id)) {
      return end(response, 409, '{"code":"transaction_already_paid","type":"payment_error"}');
    }
    count(charges, id);
    arrived.charged = true;
    callbackUrls.set(id, url ?? "");
    await held;
    if (upstream.answerMs > 0) await delay(upstream.answerMs, undefined, { ref: false });
    if (fault === "resetAfter") return void socket.resetAndDestroy();
    end(response, 200, paymentOf(id));
  }

  async function resend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { external_id: id = "" } = JSON.parse(await textOf(request)) as Record<string, string>;
    if (!callbackUrls.has(id)) return notFound(response);
    end(response, 200, "{}");
    await callBack(id).catch(() => {});
  }

  /** Sends the callback of a charge, also without being asked. */
  async function callBack(id: string): Promise<void> {
    const body = new TextEncoder().encode(paymentOf(id));
    const headers = { "x-service-signature": sign(body, password) };
    const { origin, pathname } = new URL(callbackUrls.get(id) ?? "");
    const answer = await fetch(`${upstream.callbackTo ?? origin}${pathname}`, {
      method: "POST",
      headers,
      body,
    });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`the callback was answered ${answer.status}`);
  }

  const upstream = {
    url: `http://127.0.0.1:${await listen(server)}`,
    arrivals,
    charges,
    requests,
    counts,
    /** While true, every request is cut except payments, which get the answer of their fault. */
    down: false,
    /** Origin that callbacks go to instead of their own, as with a proxy before the gateways. */
    callbackTo: undefined as string | undefined,
    /** Delay of an answer to a charge, in milliseconds. */
    answerMs: 0,
    /** Holds back answers to charges until the returned function is called. */
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = undefined;
        resolve();
      };
    },
    callBack,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return upstream;
}

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
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
