import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { type CallbackAccount, createCallbackHandler } from "../../src/callbacks/receiver.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { ask } from "../ask.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { listen } from "../listen.ts";

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export function account(password: string, ...previous: string[]): CallbackAccount {
  return {
    password: new Secret(password),
    previousPasswords: previous.map((text) => new Secret(text)),
  };
}

/** A receiver on its own port. */
export async function startReceiver({
  accounts = { shop: account("password") },
  log = createMemoryLedger({ retentionMs: 7 * 86_400_000 }),
  bodyTimeoutMs = 10_000,
  maxBytes,
}: {
  accounts?: Record<string, CallbackAccount>;
  log?: Ledger;
  bodyTimeoutMs?: number;
  /** Of the memory budget. */
  maxBytes?: number;
} = {}) {
  const verdicts: Observations["callback"][] = [];
  const faults: string[] = [];
  const handle = createCallbackHandler({
    accounts: new Map(Object.entries(accounts)),
    ledger: log,
    bodyTimeoutMs,
    intake: new Intake({
      budget: createMemoryBudget(maxBytes),
      admission: createAdmission({ maxCalls: undefined }),
    }),
    report: reportTo({
      callback: (received) => void verdicts.push(received),
      fieldFault: ({ account, endpoint, path }) =>
        void faults.push(`${account} ${endpoint} ${path}`),
    }),
  });
  const server = createServer((req, res) => void handle(req, res));
  const port = await listen(server);

  return {
    log,
    verdicts,
    faults,
    port,

    send: (request: Parameters<typeof ask>[1]) =>
      ask(`http://127.0.0.1:${port}`, {
        path: "/callbacks/shop/payments",
        method: "POST",
        ...request,
      }),

    /** Writes the text to a socket as it is. @returns all that it receives until it is closed. */
    sendRaw(written: string): Promise<string> {
      const socket = connect(port, "127.0.0.1");
      socket.write(written);
      return text(socket);
    },

    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      await log.close();
    },
  };
}
