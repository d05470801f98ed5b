import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { sign } from "../../src/wire/signature.ts";
import { listen } from "../listen.ts";

export type MoneyUpstream = Awaited<ReturnType<typeof startMoneyUpstream>>;

/**
 * A payments service that charges as soon as it has read a whole request, whatever happens to the
 * answer: it resets the connection if the external_id begins with `resetAfter`. It sends a callback
 * only when asked to resend it. `limit` is the requests a second that it allows.
 */
export async function startMoneyUpstream(password: string, limit = 2_000) {
  /** Number of payment requests that were read, by external_id. */
  const arrivals = new Map<string, number>();
  /** The same requests in order. `atMs` is when each was read, by `performance.now()`. */
  const requests: { readonly externalId: string; readonly atMs: number }[] = [];
  const callbackUrls = new Map<string, string>();
  let held: Promise<void> | undefined;

  const server = createServer(async (request, response) => {
    response.setHeader("x-ratelimit-limit", limit);
    if (request.url?.endsWith("/payments/v1/new")) return await charge(request, response);
    if (upstream.down) return void request.socket.destroy();
    if (request.url?.endsWith("/callback/resend")) return await resend(request, response);
    notFound(response);
  });

  async function charge(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const body = await text(request);
    const { external_id: externalId, callback_url: url } = JSON.parse(body) as Record<
      string,
      string
    >;
    const id = externalId ?? "";
    arrivals.set(id, (arrivals.get(id) ?? 0) + 1);
    requests.push({ externalId: id, atMs: performance.now() });
    callbackUrls.set(id, url ?? "");
    await held;
    if (upstream.answerMs > 0) await delay(upstream.answerMs, undefined, { ref: false });
    if (id.startsWith("resetAfter")) return void socket.resetAndDestroy();
    end(response, 200, paymentOf(id));
  }

  async function resend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { external_id: id = "" } = JSON.parse(await text(request)) as Record<string, string>;
    if (!callbackUrls.has(id)) return notFound(response);
    end(response, 200, "{}");
    const body = new TextEncoder().encode(paymentOf(id));
    const headers = { "x-service-signature": sign(body, password) };
    const { origin, pathname } = new URL(callbackUrls.get(id) ?? "");
    const url = `${upstream.callbackTo ?? origin}${pathname}`;
    // A gateway that is down does not get it.
    await fetch(url, { method: "POST", headers, body }).then(
      (answer) => answer.arrayBuffer(),
      () => {},
    );
  }

  const upstream = {
    url: `http://127.0.0.1:${await listen(server)}`,
    arrivals,
    requests,
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
