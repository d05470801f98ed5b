import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

/** Sends a request just as it is told to, unlike `fetch`, and reads the whole answer. */
export async function ask(
  url: string,
  { body, ...options }: http.RequestOptions & { readonly body?: string | Uint8Array } = {},
) {
  const request = http.request(url, { agent: false, ...options });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const { statusCode: status = 0, headers, socket } = response;
  return { status, headers, socket, text: await text(response) };
}

/** A connection to a port, or to that of an address, which is closed after the test. */
export async function connected(
  t: Pick<TestContext, "after">,
  address: number | string,
): Promise<net.Socket> {
  const port = typeof address === "number" ? address : Number(new URL(address).port);
  const socket = net.connect(port, "127.0.0.1").on("error", () => {});
  t.after(() => socket.destroy());
  await once(socket, "connect");
  return socket;
}
