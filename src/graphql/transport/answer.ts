import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { ExecutionResult } from "graphql";
import { type FetchAPI, processRegularResult } from "graphql-yoga";
import type { Heartbeats } from "../../live/heartbeats.ts";
import { turnEnd } from "../../net/turn-end.ts";

/** What answers a request: a whole text, an event stream, or a head alone. */
export interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | EventStream | undefined;
}

/** Writes the body of a response whose head is written. It must end by itself when the client leaves. */
export type EventStream = (response: ServerResponse, heartbeats: Heartbeats) => Promise<void>;

/** Writes an answer: a text together with those of other requests, an event stream as it comes. */
export async function sendAnswer(
  { status, headers, body }: Answer,
  response: ServerResponse,
  heartbeats: Heartbeats,
): Promise<void> {
  if (typeof body !== "function") await turnEnd();
  if (response.destroyed) return;
  if (typeof body === "function") return body(response.writeHead(status, headers), heartbeats);
  if (!body) return void response.writeHead(status, headers).end();
  // With the length set, Node writes the head and a text body to the socket in one piece.
  const bytes = Buffer.byteLength(body);
  response.writeHead(status, { ...headers, "content-length": bytes });
  response.end(body, bytes === body.length ? "latin1" : "utf8");
}

/** Writes a result with Yoga's own function: status, headers and JSON. */
export function encode(result: ExecutionResult, type: string): Answer {
  return processRegularResult(result, plainFetch, type) as unknown as Answer;
}

/** What Yoga makes a response of, as an answer. A constructor may return another object. */
const plainFetch = {
  Response: function answerOf(body: string, init: Pick<Answer, "status" | "headers">) {
    return { ...init, body };
  },
} as unknown as FetchAPI;
