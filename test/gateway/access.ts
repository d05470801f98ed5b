import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { oncePer } from "../../src/collections/once-per.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { timeoutMs } from "../until.ts";
import { postGraphql } from "./callers.ts";

/** The result of authorization; `allowed` if the operation was reached, whatever it answered. */
export type Outcome = "allowed" | "UNAUTHENTICATED" | "PERMISSION_DENIED";

/** Headers that a caller sends. */
export type Shown = Readonly<Record<string, string>>;

/** Calls a method as a service does; of a stream, reads only the first event. */
export async function callRpc(
  gateway: Gateway,
  method: DescMethod,
  request: object,
  headers: Shown,
): Promise<Outcome> {
  const client = createClient(method.parent as DescService, transportOf(gateway)) as Record<
    string,
    (request: object, options: object) => Promise<unknown> | AsyncIterable<unknown>
  >;
  const leave = new AbortController();
  const signal = AbortSignal.any([leave.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const answer = client[method.localName]?.(request, { headers, signal });
    if (method.methodKind === "unary") await answer;
    else await (answer as AsyncIterable<unknown>)[Symbol.asyncIterator]().next();
    return "allowed";
  } catch (error) {
    const refusal = ConnectError.from(error);
    const { code } = refusal;
    // A refusal by the payments service shows that authorization allowed the call.
    if (refusal.findDetails(UpstreamErrorSchema)[0]) return "allowed";
    if (code === Code.Unauthenticated) return "UNAUTHENTICATED";
    if (code === Code.PermissionDenied) return "PERMISSION_DENIED";
    if (answers.has(code)) return "allowed";
    throw error;
  } finally {
    leave.abort();
  }
}

/** Codes that an operation itself may return. Any other code fails the test. */
const answers = new Set([Code.NotFound, Code.AlreadyExists, Code.FailedPrecondition, Code.Aborted]);

const transportOf = oncePer(({ rpcUrl }: Gateway) =>
  createGrpcTransport({ baseUrl: rpcUrl, idleConnectionTimeoutMs: 100 }),
);

/** Runs a GraphQL operation as a frontend does; of a subscription, reads only the first event. */
export async function callGraphql(
  gateway: Gateway,
  operation: string,
  headers: Shown,
): Promise<Outcome> {
  const stream = operation.startsWith("subscription");
  const leave = new AbortController();
  const response = await postGraphql(gateway, operation, {
    headers: { ...(stream && { accept: "text/event-stream" }), ...headers },
    signal: AbortSignal.any([leave.signal, AbortSignal.timeout(timeoutMs)]),
  });
  try {
    const text = stream ? await firstEvent(response) : await response.text();
    const { errors } = JSON.parse(text) as {
      errors?: { message: string; extensions: Extensions }[];
    };
    for (const { message, extensions } of errors ?? []) {
      if (extensions.upstream) continue;
      if (extensions.code === "UNAUTHENTICATED") return "UNAUTHENTICATED";
      if (extensions.code === "FORBIDDEN") return "PERMISSION_DENIED";
      if (extensions.code !== "NOT_FOUND") throw new Error(`${operation}: ${message}`);
    }
    if (response.status !== 200 && response.status !== 404)
      throw new Error(`${operation}: ${text}`);
    return "allowed";
  } finally {
    leave.abort();
  }
}

interface Extensions {
  readonly code: string;
  readonly upstream?: object;
}

/** The data of a stream's first event, or the whole body if the response is no stream. */
async function firstEvent(response: Response): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream") return response.text();
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const data = /^data: ?(\{.*\})$/m.exec(text)?.[1];
    if (data) return data;
  }
  throw new Error(`no event in ${JSON.stringify(text)}`);
}
