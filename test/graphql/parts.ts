import assert from "node:assert/strict";
import type { Answer, Served } from "./serve.ts";

/** The `accept` header that Apollo's clients send with a subscription. */
const accept = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json";

/** Subscribes as Apollo's clients do. */
export const subscribeInParts = (
  { post }: Served,
  query: string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
) => post({ query }, { accept, ...headers }, signal);

/** The results of a subscription; an error that is beside a null payload has both. A part is complete when the boundary behind it has arrived. */
export async function* partsOf(gateway: Served, query: string): AsyncGenerator<Answer> {
  const boundary = "\r\n--graphql";
  let text = "\r\n";
  const response = await subscribeInParts(gateway, query);
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf(boundary); end >= 0; end = text.indexOf(boundary)) {
      const [head = "", body = ""] = text.slice(0, end).split("\r\n\r\n");
      text = text.slice(end + boundary.length);
      if (head === "") continue;
      assert.equal(head.trim(), "content-type: application/json; charset=utf-8");
      const { payload, ...beside } = JSON.parse(body);
      if (payload) assert.deepEqual(beside, {});
      if (payload !== undefined) yield payload ?? { payload, ...beside };
    }
  }
  assert.equal(text, "--\r\n", "nothing comes behind the last boundary");
}
