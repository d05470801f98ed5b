import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

type Asked = http.RequestOptions & { readonly body?: string | Uint8Array };

/** Sends a request just as it is told to, unlike `fetch`. Of its answer nothing is read yet. */
export async function opened(url: string, { body, ...options }: Asked = {}) {
  const request = http.request(url, { agent: false, ...options });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  return { request, response };
}

/** The same, and reads the whole answer. */
export async function ask(url: string, asked?: Asked) {
  const { response } = await opened(url, asked);
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
