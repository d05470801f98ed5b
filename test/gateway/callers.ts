import assert from "node:assert/strict";
import http from "node:http";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { type ClientOptions, createClient as createSocketClient } from "graphql-ws";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentMethodType } from "../../src/gen/payments/v1/payment_pb.ts";
import { sign } from "../../src/wire/signature.ts";
import { ask } from "../ask.ts";
import { inTime } from "../until.ts";

export type Urls = Pick<Gateway, "publicUrl" | "rpcUrl">;

/** A CreatePayment request with a card, which the sandbox takes at once by default. */
export function paymentRequest(externalId: string, number = "4111111111111111") {
  return {
    amount: "10.10",
    currency: "UAH",
    mode: PaymentMode.DIRECT,
    externalId,
    customer: { email: "customer@shop.example" },
    paymentMethod: {
      method: { case: "cc" as const, value: { number, cvv: "123", expMonth: 12, expYear: 2035 } },
    },
  };
}

/** A CreatePayment request whose card the customer gives to the service. */
export function hostedPayment(externalId: string, amount = "10.10") {
  return {
    ...{ amount, currency: "UAH", mode: PaymentMode.HOSTED, externalId },
    paymentMethod: { type: PaymentMethodType.CC_NUMBER },
  };
}

export function payoutRequest(externalId: string) {
  return {
    order: { currency: "UAH", description: "Salary", externalId, originalAmount: "10.00" },
    payer: { entityId: "entity" },
    payoutType: "cash",
    recipient: { cash: { firstName: "Ivan", lastName: "Franko" } },
  };
}

/** The input of `createPayment` as it stands in a document, like `paymentRequest`. */
export function paymentInput(externalId: string, number = "4111111111111111", more = ""): string {
  return `{
    amount: "10.10", currency: "UAH", mode: DIRECT, externalId: "${externalId}" ${more}
    customer: { email: "customer@shop.example" }
    paymentMethod: { method: { cc: {
      number: "${number}", cvv: "123", expMonth: 12, expYear: 2035
    } } }
  }`;
}

/** Transports to the rpc listener. Connect's own path serves what the fast path leaves to it. */
export const transports = {
  gRPC: (baseUrl: string) => createGrpcTransport({ baseUrl }),
  "gRPC by Connect's own path": (baseUrl: string) =>
    createGrpcTransport({ baseUrl, sendCompression: compressionGzip, compressMinBytes: 0 }),
  "gRPC-Web": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  Connect: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
} satisfies Record<string, (baseUrl: string) => Transport>;

/** A client of one service of a gateway. */
export function clientOf<Service extends DescService>(
  service: Service,
  { rpcUrl }: Pick<Gateway, "rpcUrl">,
  by: keyof typeof transports = "gRPC",
): Client<Service> {
  return createClient(service, transports[by](rpcUrl));
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what its query asks for
type Answered = { data: any; errors?: any[]; extensions?: any };

interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | null;
  readonly variables?: object | undefined;
}

/** Sends a GraphQL operation by POST. */
export function postGraphql(
  { publicUrl }: Pick<Gateway, "publicUrl">,
  query: string,
  { headers = {}, signal = null, variables }: PostOptions = {},
): Promise<Response> {
  const json = { "content-type": "application/json" };
  const body = JSON.stringify({ query, variables });
  const init = { method: "POST", headers: { ...json, ...headers }, body, signal };
  return fetch(`${publicUrl}/graphql`, init);
}

/** Sends a GraphQL operation by POST and resolves with the answer. */
export async function graphql(
  ...asked: Parameters<typeof postGraphql>
): Promise<Answered & { response: Response }> {
  const response = await postGraphql(...asked);
  return { ...((await response.json()) as Answered), response };
}

/** The data of a GraphQL operation, which must have no errors. */
export async function dataOf(...asked: Parameters<typeof graphql>): Promise<Answered["data"]> {
  const { data, errors } = await graphql(...asked);
  assert.equal(errors, undefined, JSON.stringify(errors));
  return data;
}

/** A GraphQL client over WebSocket that does not reconnect. */
export function socketClient(
  { publicUrl }: Pick<Gateway, "publicUrl">,
  options: Partial<ClientOptions> = {},
) {
  const url = `${publicUrl.replace("http", "ws")}/graphql`;
  return createSocketClient({ url, webSocketImpl: WebSocket, retryAttempts: 0, ...options });
}

/** What the service tells of a payment in a callback. */
export function paymentTold(externalId: string, status = "success", operation = "payment") {
  const details = { payment_id: `p-${externalId}`, status, amount: "1.00", currency: "UAH" };
  return { external_id: externalId, operation, details };
}

export interface SendOptions {
  /** Account and kind. */
  readonly path?: string;
  readonly password?: string;
  readonly signal?: AbortSignal;
}

/** `fetch` would need more processor time for thousands of callbacks than the gateway does. */
const agent = new http.Agent({ keepAlive: true });

/** Sends a signed callback and resolves with the answer. */
export function postCallback(
  { publicUrl }: Pick<Gateway, "publicUrl">,
  told: object | string,
  { path = "default/payments", password = "sandbox-password", signal }: SendOptions = {},
) {
  const body = typeof told === "string" ? told : JSON.stringify(told);
  const headers = { "x-service-signature": sign(Buffer.from(body), password) };
  const url = `${publicUrl}/callbacks/${path}`;
  return ask(url, { method: "POST", agent, headers, body, ...(signal && { signal }) });
}

/** Sends a signed callback, which the gateway must accept. */
export async function sendCallback(...sent: Parameters<typeof postCallback>): Promise<void> {
  assert.equal((await postCallback(...sent)).status, 200);
}

/** Sends a callback that becomes an event: the `n`th refund of a payment. */
export function sendRefund(
  gateway: Pick<Gateway, "publicUrl">,
  externalId: string,
  n: number,
): Promise<void> {
  const { details, ...told } = paymentTold(externalId, "pending", "refund");
  return sendCallback(gateway, { ...told, details: { ...details, operation_id: `op-${n}` } });
}

/** The cursors of the first `count` events in the log of a gateway. */
export async function cursorsOf(
  gateway: Pick<Gateway, "rpcUrl">,
  count: number,
  headers: Record<string, string> = {},
): Promise<string[]> {
  const cursors: string[] = [];
  const options = { headers, ...inTime() };
  const all = clientOf(EventService, gateway).streamEvents({ afterCursor: "earliest" }, options);
  for await (const { event } of all) if (cursors.push(event?.cursor ?? "") === count) break;
  return cursors;
}

/** Number of requests for this external_id that the sandbox received. */
export async function countSent(
  { sandboxUrl }: Pick<Gateway, "sandboxUrl">,
  externalId: string,
): Promise<number> {
  const query = new URLSearchParams({ type: "request", external_id: externalId });
  const response = await fetch(`${sandboxUrl}/__sandbox/journal?${query}`, {
    headers: { authorization: `Basic ${btoa("sandbox:sandbox-password")}` },
  });
  return ((await response.json()) as { entries: unknown[] }).entries.length;
}

/** Approves a payment on its 3DS page, as the customer does in the browser. */
export async function approve(page: string | undefined): Promise<void> {
  assert.ok(page, "there is no page");
  const body = new URLSearchParams({ decision: "approve" });
  const { status } = await fetch(page, { method: "POST", body, redirect: "manual" });
  assert.ok(status < 400, `the 3DS page answered ${status}`);
}

/** The external_id of each payment that the sandbox made for this login, in order. */
export async function ordersIn(
  sandboxUrl: string | undefined,
  login = "sandbox:sandbox-password",
): Promise<string[]> {
  const headers = { authorization: `Basic ${btoa(login)}` };
  const ledger = await fetch(`${sandboxUrl}/sandbox/ledger`, { headers });
  const { payments } = (await ledger.json()) as { payments: { external_id: string }[] };
  return payments.map(({ external_id }) => external_id);
}
