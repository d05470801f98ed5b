import { createServer, type Server } from "node:http";
import { listen } from "../listen.ts";

/** An upstream that enforces a rate limit and counts requests. */
export interface StrictUpstream {
  readonly url: string;
  /** Requests accepted and rejected since the last `reset`. */
  readonly counts: { accepted: number; rejected: number };
  reset(): void;
  close(): void;
}

/**
 * Has a token bucket of one second's requests and answers requests beyond it with 429. Every answer
 * carries the X-RateLimit headers. Payments and payout look-ups are answered as pending.
 */
export async function startStrictUpstream(limit: number): Promise<StrictUpstream> {
  const counts = { accepted: 0, rejected: 0 };
  let tokens = limit;
  let atMs = performance.now();
  const server: Server = createServer(async (request, response) => {
    const now = performance.now();
    tokens = Math.min(limit, tokens + ((now - atMs) / 1_000) * limit);
    atMs = now;
    const allowed = tokens >= 1;
    if (allowed) tokens--;
    counts[allowed ? "accepted" : "rejected"]++;
    let body = "";
    for await (const chunk of request) body += chunk;
    const missing = limit - tokens;
    response.writeHead(allowed ? 200 : 429, {
      "content-type": "application/json",
      "x-ratelimit-limit": limit,
      "x-ratelimit-remaining": Math.floor(tokens),
      "x-ratelimit-reset": Math.ceil(missing / limit),
    });
    response.end(allowed ? answerTo(request.url ?? "", body) : tooMany);
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    counts,
    reset() {
      counts.accepted = 0;
      counts.rejected = 0;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const tooMany =
  '{"code":"too_many_requests","message":"Too many requests","type":"api_error","error_id":"e"}';

function answerTo(url: string, body: string): string {
  const externalId =
    /"external_id":"([^"]*)"/.exec(body)?.[1] ??
    new URL(url, "http://upstream").searchParams.get("external_id");
  if (url.includes("/payouts/")) {
    return JSON.stringify({ external_id: externalId, transaction_id: "t", status: "pending" });
  }
  return JSON.stringify({
    external_id: externalId,
    operation: "payment",
    details: { payment_id: `p-${externalId}`, status: "pending" },
  });
}
