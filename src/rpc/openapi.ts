import type { RequestHead } from "../net/request-head.ts";

/** Where the rpc listener serves openapi.json. */
export const openapiPath = "/openapi.json";

/**
 * Answers with the description of the unary methods as JSON over HTTP. It needs no credentials, as
 * reflection does not: it holds nothing but the public contract.
 */
export async function serveOpenapi({ method, answer }: RequestHead): Promise<void> {
  if (method !== "GET" && method !== "HEAD") return answer(405, { allow: "GET, HEAD" });
  document ??= load();
  const body = await document;
  const headers = {
    "content-type": "application/json",
    "content-length": String(body.byteLength),
    "cache-control": "no-cache",
    "x-content-type-options": "nosniff",
  };
  answer(200, headers, method === "HEAD" ? undefined : body);
}

let document: Promise<Buffer> | undefined;

async function load(): Promise<Buffer> {
  const { default: json } = await import("../../openapi.json", { with: { type: "json" } });
  return Buffer.from(JSON.stringify(json));
}
