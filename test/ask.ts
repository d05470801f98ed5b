import { once } from "node:events";
import http from "node:http";
import { text } from "node:stream/consumers";

/** Sends a request just as it is told to, unlike `fetch`, and reads the whole answer. */
export async function ask(
  url: string,
  { body, ...options }: http.RequestOptions & { readonly body?: string | Uint8Array } = {},
) {
  const request = http.request(url, { agent: false, ...options });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const { statusCode: status, headers, socket } = response;
  return { status, headers, socket, text: await text(response) };
}
