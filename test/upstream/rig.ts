import type { LookupFunction } from "node:net";
import type { TestContext } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import type { CustomerIdentitySchema } from "../../src/gen/payments/v1/customer_pb.ts";
import { GetOperationRequestSchema } from "../../src/gen/payments/v1/operation_service_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentMethodType } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  ResendCallbackRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import {
  GetPayoutRequestSchema,
  RequestPayoutRequestSchema,
} from "../../src/gen/payments/v1/payout_service_pb.ts";
import {
  DeactivateSubscriptionRequestSchema,
  UpdateSubscriptionRequestSchema,
} from "../../src/gen/payments/v1/subscription_service_pb.ts";
import {
  DeleteWalletItemRequestSchema,
  FindWalletItemsRequestSchema,
} from "../../src/gen/payments/v1/wallet_service_pb.ts";
import type { RateLimitHeaders, TakeOptions } from "../../src/ratelimit/bucket.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { type ConnectionsOptions, createConnections } from "../../src/upstream/connections.ts";
import { createUpstream } from "../../src/upstream/create-upstream.ts";
import type { SendOptions, Upstream, UpstreamOptions } from "../../src/upstream/upstream.ts";
import { closing } from "../of-suite.ts";
import { until } from "../until.ts";
import { answer, json, type Script, scriptedServer } from "./scripted-server.ts";

/** How a permit was settled. */
type Settled = ["observe" | "rejected", RateLimitHeaders];

export interface RigOptions extends Partial<UpstreamOptions>, Pick<ConnectionsOptions, "tls"> {
  /** Runs before the bucket gives a token; a rejection refuses the token. */
  readonly take?: (asked: TakeOptions) => Promise<unknown>;
}

/** An upstream client whose bucket always has a token, with a record of all that it reports. */
export function rig(t: TestContext, url: string, given: RigOptions = {}) {
  const { take, tls, ...options } = given;
  const taken: TakeOptions[] = [];
  const settled: Settled[] = [];
  const calls: { endpoint: string; outcome: string }[] = [];
  /** Why each call has no answer; undefined for a call that has one. */
  const causes: (string | undefined)[] = [];
  const faults: Omit<Observations["fieldFault"], "account">[] = [];
  const credentials: boolean[] = [];
  /** Breaker changes as `<calls> <state>`, such as `other open`. */
  const states: string[] = [];
  const permit = {
    observe: (headers: RateLimitHeaders) => void settled.push(["observe", headers]),
    rejected: (headers: RateLimitHeaders) => void settled.push(["rejected", headers]),
  };
  const upstream = createUpstream({
    account: {
      name: "default",
      url,
      login: "merchant",
      password: new Secret("geheim-ключ"),
      previousPasswords: [],
    },
    bucket: {
      source: "own",
      async take(asked) {
        taken.push(asked);
        await take?.(asked);
        return permit;
      },
      waiting: { money: 0, read: 0 },
      status: () => ({ limit: 1, remaining: 1, remainingForReads: 1, resetSeconds: 0 }),
      close: async () => {},
    },
    timeoutMs: 10_000,
    ...(tls && {
      connections: createConnections({
        ...{ origin: new URL(url).origin, timeoutMs: options.timeoutMs ?? 10_000, tls },
      }),
    }),
    report: reportTo({
      upstreamCall({ endpoint, outcome, fault }) {
        calls.push({ endpoint, outcome });
        causes.push(fault);
      },
      fieldFault: ({ account, ...fault }) => void faults.push(fault),
      credentials: ({ accepted }) => void credentials.push(accepted),
      breaker: ({ calls, state }) => void states.push(`${calls} ${state}`),
    }),
    ...options,
  });
  t.after(() => upstream.close());
  return { upstream, taken, settled, calls, causes, faults, credentials, states };
}

/** A scripted server and a client of it, which has its URL in this form. */
export async function serverRig(
  t: TestContext,
  script: Script,
  { at = (url: string) => url, ...options }: RigOptions & { at?: (url: string) => string } = {},
) {
  const server = closing(t, await scriptedServer(script));
  return { ...rig(t, at(server.url), options), server };
}

/** Names of hosts are looked up only as the test says: as found, or not. */
export function heldLookups() {
  const held: ((isFound: boolean) => void)[] = [];
  let isReleased = false;
  const lookup: LookupFunction = (_name, _of, found) => {
    const end = (isFound: boolean) =>
      isFound
        ? found(null, [{ address: "127.0.0.1", family: 4 }])
        : found(Object.assign(new Error("gone"), { code: "ENOTFOUND" }), []);
    if (isReleased) end(true);
    else held.push(end);
  };
  return {
    ...{ held, tls: { lookup } },
    reached: (count: number) => until(() => held.length >= count),
    /** Finds all, later ones too. */
    release() {
      isReleased = true;
      for (const end of held) end(true);
    },
  };
}

/** An answer to a payment or a look-up, one about a payout, and one of a proxy. */
export const good = json(200, '{"id":"p","currency":"UAH"}');
export const doneOrder = json(200, '{"external_id":"order-1","status":"done"}');
export const badGateway = answer(502, "<html>Bad Gateway</html>");

/** A signal that never aborts. */
export const patient = { signal: new AbortController().signal };

export const hostedPayment = create(CreatePaymentRequestSchema, {
  amount: "10.10",
  currency: "UAH",
  mode: PaymentMode.HOSTED,
  externalId: "order-1",
  paymentMethod: { type: PaymentMethodType.CC_NUMBER },
});

/** A call about `order-1`, unless another external_id is given. */
const sender =
  <T>(send: (upstream: Upstream, externalId: string, options: SendOptions) => Promise<T>) =>
  (upstream: Upstream, options: SendOptions = patient, externalId = "order-1") =>
    send(upstream, externalId, options);

export type Send = (
  upstream: Upstream,
  options?: SendOptions,
  externalId?: string,
) => Promise<unknown>;

export const createPayment = sender((upstream, externalId, options) =>
  upstream.createPayment({ ...hostedPayment, externalId }, options),
);
export const requestPayout = sender((upstream, externalId, options) =>
  upstream.requestPayout(create(RequestPayoutRequestSchema, { order: { externalId } }), options),
);
/** Every call that moves money. */
export const moneyCalls: Readonly<Record<string, Send>> = {
  createPayment,
  createRecurrentPayment: sender((upstream, externalId, options) =>
    upstream.createRecurrentPayment(
      create(CreateRecurrentPaymentRequestSchema, { externalId, amount: "1" }),
      options,
    ),
  ),
  confirmPayment: sender((upstream, externalId, options) =>
    upstream.confirmPayment(create(ConfirmPaymentRequestSchema, { externalId }), options),
  ),
  requestPayout,
};
export const getPayout = sender((upstream, externalId, options) =>
  upstream.getPayout(create(GetPayoutRequestSchema, { externalId }), options),
);
export const resendCallback = sender((upstream, externalId, options) =>
  upstream.resendCallback(create(ResendCallbackRequestSchema, { externalId }), options),
);
export const deactivate = sender((upstream, subscriptionId, options) =>
  upstream.deactivateSubscription(
    create(DeactivateSubscriptionRequestSchema, { subscriptionId }),
    options,
  ),
);

export const updateSubscription = sender((upstream, subscriptionId, options) =>
  upstream.updateSubscription(create(UpdateSubscriptionRequestSchema, { subscriptionId }), options),
);
export const deleteWalletItem = sender((upstream, optionId, options) =>
  upstream.deleteWalletItem(
    create(DeleteWalletItemRequestSchema, { optionId, type: "card" }),
    options,
  ),
);
export const getOperation = sender((upstream, externalId, options) =>
  upstream.getOperation(
    create(GetOperationRequestSchema, { externalId, operationId: "o" }),
    options,
  ),
);
/** A look-up for a customer, by default for one with a token. */
export const findItems = (
  upstream: Upstream,
  customer: MessageInitShape<typeof CustomerIdentitySchema> = { authToken: "customer-jwt" },
) => upstream.findWalletItems(create(FindWalletItemsRequestSchema, { customer }), patient);

/** The GatewayError that a call ends with. */
export async function failureOf(call: Promise<unknown>): Promise<GatewayError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}
