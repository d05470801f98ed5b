import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { TestContext } from "node:test";
import { Secret } from "../../src/secrets/secret.ts";
import { serve } from "../../test/listen.ts";
import { timeoutMs } from "../../test/until.ts";
import type { SandboxOptions, SandboxRecord } from "../options.ts";
import { type Sandbox, startSandbox } from "../server.ts";

export const password = "sandbox-password";

/** The header of these credentials. */
export function basic(login: string, password: string) {
  return { authorization: `Basic ${Buffer.from(`${login}:${password}`).toString("base64")}` };
}

/** The header for a run of this name; by default with its right password. */
export function ofRun(name: string | number, given = `${password}+${name}`) {
  return basic(`sandbox+${name}`, given);
}

/** An unsigned customer access token. The sandbox accepts it like any other. */
export function customerToken(claims: object): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  return `${encode({ alg: "none" })}.${encode(claims)}.signature`;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers as a caller without types would.
export type Body = any;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

export interface Rig {
  readonly sandbox: Sandbox;
  readonly records: SandboxRecord[];
  /** A call with the merchant's credentials; a string body is sent as it is. */
  call(method: string, path: string, body?: unknown, headers?: HeadersInit): Promise<Reply>;
  get(path: string, headers?: HeadersInit): Promise<Reply>;
  /** Asks for a payment. */
  pay(payment: unknown, headers?: HeadersInit): Promise<Reply>;
  payOut(payout: unknown): Promise<Reply>;
  /** Confirms `order-1`, or the payment that the members name. */
  confirm(members?: object): Promise<Reply>;
  /** Asks for the callback of `order-1`, or of what the members name. */
  resend(members?: object): Promise<Reply>;
  /** Does by hand to a payment what happens at the service: `refund`, `cancel` or `settle`. */
  act(payment: Reply, action: string, body?: object): Promise<Reply>;
  /** Like `call`, but returns the plain `fetch`, for answers that never arrive. */
  send(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response>;
}

/** Starts a sandbox without delays on a free port. It is closed after the test. */
export async function startRig(
  t: TestContext,
  options: Partial<SandboxOptions> = {},
): Promise<Rig> {
  const records: SandboxRecord[] = [];
  const sandbox = await startSandbox({
    host: "127.0.0.1",
    port: 0,
    login: "sandbox",
    password: new Secret(password),
    rateLimit: 10_000,
    delays: { callbackMs: 0, settleMs: 0, payoutMs: 0, slowAnswerMs: 0, ...options.delays },
    callbackRetry: { firstPauseMs: 1, maxPauseMs: 4, ...options.callbackRetry },
    log: (record) => records.push(record),
    ...without(options),
  });
  t.after(() => sandbox.close());

  function send(method: string, path: string, body?: unknown, init: RequestInit = {}) {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return fetch(sandbox.url + path, {
      ...init,
      method,
      headers: { ...basic("sandbox", password), ...init.headers },
      ...(text !== undefined && { body: text }),
    });
  }

  const call: Rig["call"] = async (method, path, body, headers) => {
    const response = await send(method, path, body, headers && { headers });
    const text = await response.text();
    const isJson = response.headers.get("content-type") === "application/json";
    const { status } = response;
    return { status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
  };

  return {
    sandbox,
    records,
    send,
    call,
    get: (path, headers) => call("GET", path, undefined, headers),
    pay: (payment, headers) => call("POST", paths.new, payment, headers),
    payOut: (payout) => call("POST", paths.requestPayout, payout),
    confirm: (members) => call("POST", paths.confirm, { external_id: "order-1", ...members }),
    resend: (members) => call("POST", paths.resend, { external_id: "order-1", ...members }),
    act: ({ body: { details } }, action, body) =>
      call("POST", `/sandbox/payments/${details.payment_id}/${action}`, body),
  };
}

function without({ delays: _, callbackRetry: __, ...rest }: Partial<SandboxOptions>) {
  return rest;
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly body: Body;
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** Resolves with the next callback, in order of arrival. */
  next(): Promise<Received>;
}

/** A merchant's callback address that answers with the given statuses, then with 200. */
export async function startReceiver(t: TestContext, ...statuses: number[]): Promise<Receiver> {
  const received: Received[] = [];
  let asked = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const { headers, url: path = "" } = request;
    received.push({ path, headers, bytes, body: JSON.parse(bytes.toString()) });
    response.writeHead(statuses.shift() ?? 200).end();
    server.emit("callback");
  });
  const address = await serve(t, server);
  return {
    url: `${address}/callback`,
    received,
    async next() {
      const index = asked++;
      const signal = AbortSignal.timeout(timeoutMs);
      while (received.length <= index) await once(server, "callback", { signal });
      return received[index] as Received;
    },
  };
}

/** A sandbox that tells its callbacks to a receiver, unless a request names another address. */
export async function startShop(
  t: TestContext,
  statuses: readonly number[] = [],
  options: Partial<SandboxOptions> = {},
): Promise<Rig & { readonly receiver: Receiver }> {
  const rig = await startRig(t, options);
  const receiver = await startReceiver(t, ...statuses);
  const callback_url = receiver.url;
  return {
    ...rig,
    receiver,
    pay: (payment, headers) => rig.pay({ callback_url, ...(payment as object) }, headers),
    payOut(payout) {
      const { order, ...rest } = payout as { order: object };
      return rig.payOut({ ...rest, order: { callback_url, ...order } });
    },
  };
}

/** That an answer is an Error object with this code, and this `param` if it is given. */
export function assertRefused(reply: Reply, status: number, code: string, param?: string): void {
  const { body } = reply;
  assert.deepEqual([reply.status, body?.code], [status, code], reply.text);
  if (param !== undefined) assert.equal(body.param, param, reply.text);
}

/** The signature of a callback, computed by the spec without the gateway's code. */
export function signatureOf(bytes: Buffer, secret: string): string {
  const base64url = (data: Buffer) =>
    data.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  const digest = createHash("sha1")
    .update(secret + base64url(bytes) + secret)
    .digest();
  return base64url(digest);
}

/** A direct card payment. `overrides` replace top-level members, `card` those of the card. */
export function newPayment(overrides: Record<string, unknown> = {}, card: object = {}) {
  return {
    amount: 10,
    currency: "UAH",
    mode: "direct",
    external_id: "order-1",
    customer: { external_id: "customer-1" },
    payment_method: {
      type: "cc_number",
      cc: { number: "4111111111111111", cvv: "123", exp_month: 12, exp_year: 2035, ...card },
    },
    ...overrides,
  };
}

/** A direct payment with this card number. */
export function cardPayment(number: string, overrides: Record<string, unknown> = {}) {
  return newPayment(overrides, { number });
}

export const paths = {
  new: "/api/payments/v1/new",
  recurrent: "/api/payments/v1/recurrent",
  confirm: "/api/payments/v1/confirm",
  resend: "/api/payments/v1/callback/resend",
  requestPayout: "/api/payouts/v1/request-payout",
  payoutInfo: "/api/payouts/v1/info",
  wallet: "/api/customers/v1/wallet",
  walletStatus: "/api/customers/v1/wallet/confirmation/status",
  walletFind: "/api/customers/v1/wallet/find",
  subscriptions: "/api/subscriptions/v1/subscriptions",
  operation: "/api/alternative-payments/v1/info/operation",
} as const;

export const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
