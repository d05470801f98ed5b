import { once } from "node:events";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { sign } from "../../src/wire/signature.ts";

export const password = "secret";

/** Monotonic time in microseconds, the same in all processes of the machine. */
export const nowUs = () => Number(process.hrtime.bigint() / 1000n);

let last = 0;
/** The number of the next event, in order of creation. */
export const nextSequence = () => ++last;

export interface CallbackOptions {
  readonly externalId: string;
  readonly sequence: number;
  readonly status?: "pending" | "success";
  /** Default: a new id, so that no callback is a repeat. */
  readonly paymentId?: string;
  /** When the callback is sent, by `nowUs`. Default: now. */
  readonly atUs?: number;
}

/** The body of a callback; its payload has the sequence and the time of sending. */
export function callback({ externalId, sequence, atUs = nowUs(), ...rest }: CallbackOptions) {
  const { status = "success", paymentId = `p-${process.pid}-${sequence}` } = rest;
  return JSON.stringify({
    ...{ id: paymentId, external_id: externalId, is_success: status === "success" },
    ...{ operation: "payment", receipt_url: "https://pay.example.com/r/8f6f2c" },
    details: {
      ...{ payment_id: paymentId, amount: "150.75", currency: "UAH", status },
      ...{
        status_code: status === "success" ? "transaction_successful" : "pending",
        rrn: "412300998877",
        auth_code: "778899",
      },
      ...{ created_at: "2026-11-20T10:15:30.000Z", payload: `@${sequence}:${atUs}@` },
    },
    customer: { email: "jo@example.com", external_id: "c-9", first_name: "Jo", last_name: "Lee" },
    payment_method: { type: "card", cc_token: { mask: "411111******1111", token: "t" } },
  });
}

/** The bytes of a signed HTTP/1.1 POST. */
export function written(path: string, body: string): Buffer {
  const signature = sign(Buffer.from(body), password);
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
    `x-service-signature: ${signature}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

export const callbackPath = "/callbacks/default/payments";

/** Sends requests over a few connections, each one request at a time, as fast as possible. */
export class Sender {
  readonly #port: number;
  readonly #sockets: (net.Socket | undefined)[];

  constructor(url: string, connections: number) {
    this.#port = Number(new URL(url).port);
    this.#sockets = new Array(connections).fill(undefined);
  }

  /** Resends after a 503. @throws Error for an answer that is neither 200 nor 503 */
  async send(requests: readonly Buffer[]): Promise<void> {
    let next = 0;
    await Promise.all(
      this.#sockets.map(async (_, i) => {
        for (;;) {
          const request = requests[next++];
          if (!request) return;
          while (!(await exchange(await this.#connection(i), request))) await delay(retryMs);
        }
      }),
    );
  }

  close(): void {
    for (const socket of this.#sockets) socket?.destroy();
  }

  /** Reconnects if the server has closed an idle connection. */
  async #connection(i: number): Promise<net.Socket> {
    const known = this.#sockets[i];
    if (known?.writable && known.readable) return known;
    const socket = net.connect({ host: "127.0.0.1", port: this.#port, noDelay: true });
    this.#sockets[i] = socket;
    await once(socket, "connect");
    return socket;
  }
}

/** Pause before a callback that could not be stored is sent again. */
const retryMs = 250;

/** Short answers come in one chunk. @returns false if the request must be sent again */
function exchange(socket: net.Socket, request: Buffer): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const settle = (answer: boolean | Error) => {
      socket.off("data", onData);
      socket.off("close", onClose);
      if (answer instanceof Error) reject(answer);
      else resolve(answer);
    };
    const onData = (data: Buffer) => {
      const [line = ""] = data.toString("latin1", 0, 64).split("\r\n", 1);
      const status = line.split(" ")[1];
      if (status === "200" || status === "503") settle(status === "200");
      else settle(new Error(`a callback got ${line}`));
    };
    const onClose = () => settle(new Error("a callback got no answer"));
    socket.on("data", onData);
    socket.on("close", onClose);
    socket.write(request);
  });
}
