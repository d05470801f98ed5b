import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { demoCustomer, demoOptions } from "@payments-gateway/sandbox/demo-data";
import { CommandError, exitCodes } from "../src/cli/command-error.ts";
import { codeName } from "../src/cli/gateway-client.ts";
import { fetchFault, unreachable } from "../src/cli/reach.ts";
import { printable } from "../src/cli/terminal.ts";
import { UpstreamErrorSchema } from "../src/gen/payments/v1/error_pb.ts";
import { PaymentMode } from "../src/gen/payments/v1/payment_input_pb.ts";
import {
  type Payment,
  PaymentState,
  PaymentStatusSchema,
} from "../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../src/gen/payments/v1/payout_service_pb.ts";
import { WalletService } from "../src/gen/payments/v1/wallet_service_pb.ts";

/** The sandbox's magic cards (docs/sandbox.md). */
export const cards = {
  success: "4111111111111111",
  challenge: "4000000000003014",
  insufficientFunds: "4000000000000614",
  delayed: "4000000000000655",
  delayedDecline: "4000000000000663",
  duplicate: "4000000000000671",
  reordered: "4000000000000689",
  lostCallback: "4000000000000697",
  lost: "4000000000000713",
} as const;

/** The result of a triggered event, with the ids by which to look it up. */
export interface Happened {
  /** One sentence about the last answer. */
  readonly answer: string;
  readonly paymentId?: string | undefined;
  readonly transactionId?: string | undefined;
  /** URL of the page that the customer has to open. */
  readonly page?: string | undefined;
}

export interface SandboxRunOptions {
  readonly transport: Transport;
  readonly externalId: string;
  readonly amount: string;
  readonly currency: string;
  /** Id of an earlier payment, for refunds. */
  readonly paymentId?: string | undefined;
  readonly control: SandboxControl;
}

/** Access to the sandbox's own endpoints, for what the payments service has no calls for. */
export interface SandboxControl {
  readonly url: string;
  readonly login: string;
  readonly password: string;
}

const refundable: ReadonlySet<PaymentState> = new Set([
  PaymentState.PAID,
  PaymentState.PARTIALLY_REFUNDED,
]);

const callOptions = { timeoutMs: 60_000 };

export type SandboxRun = ReturnType<typeof sandboxRun>;

/** Makes real calls through a gateway whose upstream is the sandbox. */
export function sandboxRun(options: SandboxRunOptions) {
  const { transport, externalId, amount, currency, control } = options;
  const payments = createClient(PaymentService, transport);
  const payouts = createClient(PayoutService, transport);

  async function create(number: string, more: { confirm?: boolean; recurrent?: boolean } = {}) {
    const { payment } = await payments.createPayment(
      {
        amount,
        currency,
        externalId,
        mode: PaymentMode.DIRECT,
        description: "Made by payments-gateway trigger",
        confirm: more.confirm,
        initRecurrentPayment: more.recurrent,
        customer: { email: "jo@example.com" },
        paymentMethod: {
          method: { case: "cc", value: { number, cvv: "123", expMonth: 12, expYear: 2035 } },
        },
      },
      callOptions,
    );
    return payment;
  }

  /** The payment that an order was paid by; undefined if it was not. */
  async function paymentIdOf(externalId: string): Promise<string | undefined> {
    const known = await payments.getPayment({ externalId }, callOptions).catch((error: unknown) => {
      if (ConnectError.from(error).code === Code.NotFound) return undefined;
      throw error;
    });
    return known && refundable.has(known.state) ? known.payment?.details?.paymentId : undefined;
  }

  return {
    payment: async (number: string) => reportOf("CreatePayment", await create(number)),

    async declined(number: string): Promise<Happened> {
      const error = await failureOf(create(number), Code.FailedPrecondition);
      const [upstream] = error.findDetails(UpstreamErrorSchema);
      return {
        answer: `CreatePayment was declined, as it should be: ${printable(upstream?.code ?? error.rawMessage)}`,
        paymentId: upstream?.paymentId,
      };
    },

    async unanswered(number: string): Promise<Happened> {
      await failureOf(create(number), Code.Unknown);
      return { answer: "CreatePayment got no answer, as it should be: its outcome is unknown" };
    },

    async confirmed(): Promise<Happened> {
      await create(cards.success, { confirm: false });
      const { payment } = await payments.confirmPayment({ externalId }, callOptions);
      return reportOf("ConfirmPayment", payment);
    },

    async cancelled(): Promise<Happened> {
      const held = await create(cards.success, { confirm: false });
      return controlled(control, held?.details?.paymentId ?? "", "cancel");
    },

    async recurrent(): Promise<Happened> {
      const first = await create(cards.success, { recurrent: true });
      const { payment } = await payments.createRecurrentPayment(
        {
          recurrentId: first?.details?.recurrentId ?? "",
          externalId: `${externalId}-again`,
          amount,
        },
        callOptions,
      );
      return reportOf(`CreateRecurrentPayment (${externalId}-again)`, payment);
    },

    async refunded(): Promise<Happened> {
      const paid = options.paymentId ?? (await paymentIdOf(externalId));
      const paymentId = paid ?? (await create(cards.success))?.details?.paymentId ?? "";
      return controlled(control, paymentId, "refund");
    },

    async payout(number: string): Promise<Happened> {
      const { payout } = await payouts.requestPayout(
        {
          order: {
            externalId,
            currency,
            originalAmount: amount,
            description: "Made by payments-gateway trigger",
          },
          payer: { entityId: "trigger" },
          payoutType: "card",
          recipient: {
            card: { firstName: "Jo", lastName: "Example", cardData: { number } },
          },
        },
        callOptions,
      );
      const { status = "", transactionId } = payout ?? {};
      const answer = `RequestPayout was answered: ${printable(status)}`;
      return { answer, transactionId };
    },
  };
}

/**
 * Whether the gateway's upstream is the sandbox: only the sandbox has the demo customer's cards.
 * The read costs one request of the budget.
 */
export async function isSandboxBehind(transport: Transport): Promise<boolean> {
  const { items } = await createClient(WalletService, transport).findWalletItems(
    { customer: { externalId: demoCustomer.externalId } },
    callOptions,
  );
  const known: readonly unknown[] = Object.values(demoOptions);
  return items.some(({ optionId }) => known.includes(optionId));
}

function reportOf(call: string, payment: Payment | undefined): Happened {
  const { details, action } = payment ?? {};
  const status = PaymentStatusSchema.value[details?.status ?? 0]?.localName.toLowerCase();
  return {
    answer: `${call} was answered: ${status}`,
    paymentId: details?.paymentId,
    page: action?.value,
  };
}

/** Waits for a call to fail with the code and returns its error. @throws if it does not */
async function failureOf(call: Promise<unknown>, code: Code): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ConnectError && error.code === code) return error;
    throw error;
  }
  throw new CommandError(`the call succeeded, but should have failed with ${codeName(code)}`);
}

async function controlled(
  { url, login, password }: SandboxControl,
  paymentId: string,
  action: "refund" | "cancel",
): Promise<Happened> {
  const target = `${url}/sandbox/payments/${encodeURIComponent(paymentId)}/${action}`;
  const basic = Buffer.from(`${login}:${password}`).toString("base64");
  const headers = { authorization: `Basic ${basic}` };
  const signal = AbortSignal.timeout(callOptions.timeoutMs);
  const response = await fetch(target, { method: "POST", headers, signal }).catch((error) => {
    const message = unreachable("the sandbox", url, fetchFault(error), "--sandbox-url");
    throw new CommandError(message, exitCodes.unavailable);
  });
  const answer = (await response.json().catch(() => ({}))) as { code?: string; message?: string };
  if (response.ok)
    return { answer: `the sandbox's ${action} was answered: ${response.status}`, paymentId };
  const said = printable(String(answer.code ?? response.status));
  const advice =
    answer.code === "authorization_failed"
      ? " (UPSTREAM_LOGIN and UPSTREAM_PASSWORD are those of the sandbox)"
      : "";
  throw new CommandError(`the sandbox refuses the ${action}: ${said}${advice}`);
}
