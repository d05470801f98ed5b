import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { type CallbackAccount, createCallbackHandler } from "../../src/callbacks/receiver.ts";
import type { EventLog } from "../../src/ledger/log.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { listen } from "../listen.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A verdict without the id and duration of its request, which `Receiver.requests` has. */
export type Received = Omit<Observations["callback"], "requestId" | "durationMs">;

/** A receiver on its own port. */
export interface Receiver extends AsyncDisposable {
  readonly log: EventLog;
  readonly verdicts: Received[];
  /** For each verdict: the id and the duration of its request. */
  readonly requests: { readonly requestId: string; readonly durationMs: number }[];
  readonly faults: string[];
  readonly port: number;
  /** Resolves with the next verdict. */
  nextVerdict(): Promise<Received>;
  send(options: {
    path?: string;
    method?: string;
    headers?: Record<string, string | string[]>;
    body?: Uint8Array | string;
  }): Promise<Answer>;
  /** Writes the text to a socket as it is. @returns all that it receives until it is closed. */
  sendRaw(text: string): Promise<string>;
}

export function account(password: string, ...previous: string[]): CallbackAccount {
  return {
    password: new Secret(password),
    previousPasswords: previous.map((text) => new Secret(text)),
  };
}

export async function startReceiver({
  accounts = { shop: account("password") },
  log = createMemoryLedger({ retentionMs: 7 * 86_400_000 }),
  bodyTimeoutMs = 10_000,
  maxBytes,
}: {
  accounts?: Record<string, CallbackAccount>;
  log?: EventLog;
  bodyTimeoutMs?: number;
  /** Of the memory budget. */
  maxBytes?: number;
} = {}): Promise<Receiver> {
  const verdicts: Received[] = [];
  const requests: Receiver["requests"] = [];
  const faults: string[] = [];
  let waiting: ((received: Received) => void)[] = [];
  const handle = createCallbackHandler({
    accounts: new Map(Object.entries(accounts)),
    log,
    bodyTimeoutMs,
    intake: new Intake({
      budget: createMemoryBudget(maxBytes),
      admission: createAdmission({ maxCalls: undefined }),
    }),
    report: reportTo({
      callback({ requestId, durationMs, ...received }) {
        requests.push({ requestId, durationMs });
        verdicts.push(received);
        for (const resolve of waiting) resolve(received);
        waiting = [];
      },
      fieldFault: ({ account, resource, path }) =>
        void faults.push(`${account} ${resource} ${path}`),
    }),
  });
  const server = createServer((req, res) => void handle(req, res));
  const port = await listen(server);

  return {
    log,
    verdicts,
    requests,
    faults,
    port,

    nextVerdict: () => new Promise((resolve) => waiting.push(resolve)),

    send: ({ path = "/callbacks/shop/payments", method = "POST", headers = {}, body = "" }) =>
      new Promise((resolve, reject) => {
        const options = { port, host: "127.0.0.1", path, method, headers, agent: false };
        const req = request(options, async (res) => {
          const chunks: Buffer[] = [];
          for await (const chunk of res) chunks.push(chunk);
          const text = Buffer.concat(chunks).toString();
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text });
        });
        req.on("error", reject).end(body);
      }),

    async sendRaw(text) {
      const socket = connect(port, "127.0.0.1");
      socket.write(text);
      let answer = "";
      for await (const chunk of socket) answer += chunk;
      return answer;
    },

    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      await log.close();
    },
  };
}
