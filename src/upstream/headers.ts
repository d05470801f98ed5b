import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import type { RateLimitHeaders } from "../ratelimit/bucket.ts";
import { readRateLimitHeaders } from "../ratelimit/headers.ts";
import type { HttpHead } from "./exchange.ts";

/**
 * The customer's own credentials as headers, in which names and values alternate; empty for a
 * customer with only an external id.
 */
export function customerHeaders(customer: CustomerIdentity | undefined): string[] {
  const { authToken, rid } = customer ?? {};
  return [
    ...(authToken === undefined ? [] : ["X-CUSTOMER-AUTH", authToken]),
    ...(rid === undefined ? [] : ["X-CUSTOMER-RID", rid]),
  ];
}

/**
 * All headers of a merchant's requests except the customer's: with a body, and without one. They
 * authenticate by HTTP Basic (RFC 7617), in UTF-8.
 */
export function merchantHeaders(login: string, password: string) {
  const credentials = Buffer.from(`${login}:${password}`, "utf8").toString("base64");
  const bodiless = [
    ...["authorization", `Basic ${credentials}`],
    ...["accept", "application/json"],
    ...["accept-encoding", "identity"],
    ...["user-agent", "payments-gateway"],
  ];
  const withBody = [...bodiless, "content-type", "application/json"];
  return { bodiless, withBody, secrets: [credentials, password] };
}

/** The X-RateLimit headers of an answer (spec, Limits part). */
export function rateLimitHeaders({ headers }: HttpHead): RateLimitHeaders {
  return {
    limit: single(headers["x-ratelimit-limit"]),
    remaining: single(headers["x-ratelimit-remaining"]),
    reset: single(headers["x-ratelimit-reset"]),
  };
}

/**
 * The pause that an answer asks for by Retry-After, in milliseconds: of seconds, or up to a date by
 * the clock of the answer (RFC 9110, section 10.2.3).
 */
export function pauseMs({ headers }: HttpHead): number | undefined {
  const text = single(headers["retry-after"]) ?? "";
  const seconds = /^\d+$/.test(text)
    ? Number(text)
    : (Date.parse(text) - Date.parse(single(headers.date) ?? "")) / 1_000;
  return seconds >= 1 && seconds < 1_000_000 ? seconds * 1_000 : undefined;
}

/**
 * Milliseconds until a refused call may be tried again. For Too Many Requests: X-RateLimit-Reset,
 * else Retry-After, else a second, the unit of the limit. For other limits: Retry-After, else a
 * minute, since the spec names no time for them.
 */
export function retryAfterMs(head: HttpHead, rateLimited: boolean): number {
  if (!rateLimited) return pauseMs(head) ?? 60_000;
  const { resetSeconds } = readRateLimitHeaders(rateLimitHeaders(head));
  return resetSeconds === undefined ? (pauseMs(head) ?? 1_000) : resetSeconds * 1_000;
}

/** Joins a repeated header, as HTTP does; the result is no number and is ignored. */
function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
