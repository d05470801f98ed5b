import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { encode } from "../../src/wire/wire.ts";
import { ApiError, invalid } from "./api-error.ts";

/** A request as routes receive it. */
export interface SandboxRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A route's response. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** How long to delay the response, in milliseconds. */
  readonly delayMs?: number;
  /** Break the connection instead of sending the response. */
  readonly lost?: boolean;
}

export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** A path template, as in `/api/subscriptions/v1/subscriptions/{subscription_id}`. */
  readonly path: string;
  handle(request: SandboxRequest): HttpResponse | Promise<HttpResponse>;
}

export function json(body: string, status = 200): HttpResponse {
  return { status, headers: { "Content-Type": "application/json" }, body };
}

/** A message as the service's JSON. */
export function bodyOf<Desc extends DescMessage>(
  schema: Desc,
  message: MessageInitShape<Desc>,
): string {
  return encode(schema, create(schema, message));
}

/** The error as an Error object, with an `error_id` of its own. */
export function errorResponse(error: ApiError): HttpResponse {
  const { code, message, type, status, details } = error;
  const { param, paymentId } = details;
  const errorId = randomUUID();
  return json(
    bodyOf(UpstreamErrorSchema, { code, message, type, errorId, param, paymentId }),
    status,
  );
}

const maxBodyBytes = 1024 * 1024;

/**
 * Reads a body of at most 1 MiB of UTF-8; returns an ApiError if it is longer or not UTF-8. The
 * server reads it even if the response does not need it, so that the connection can be reused.
 */
export async function receiveBody(request: IncomingMessage): Promise<string | ApiError> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) {
      return new ApiError("invalid_request_body", {
        status: 413,
        message: "The body is too large",
      });
    }
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    return invalid("body", "must be UTF-8");
  }
}

export function send(response: ServerResponse, answer: HttpResponse): void {
  if (answer.lost) {
    response.socket?.destroy();
    return;
  }
  const bytes = Buffer.from(answer.body);
  response.writeHead(answer.status, { ...answer.headers, "Content-Length": bytes.length });
  response.end(bytes);
}
