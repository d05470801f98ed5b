import { create } from "@bufbuild/protobuf";
import type { Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import { PaymentMode } from "../gen/payments/v1/payment_input_pb.ts";
import { PaymentStatusSchema } from "../gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { RequestPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import {
  type SandboxOrder,
  type SandboxResult,
  type ScenarioInfo,
  type Scenarios,
  sandboxOrder,
} from "./console-api.ts";
import { nameOf } from "./history.ts";
import { callAs, json, Refused, type Routes, read } from "./operator.ts";

/** A scenario of the emulator, and the values of a payment that trigger it. */
export interface MagicValue {
  readonly scenario: Omit<ScenarioInfo, "card" | "cents">;
  readonly cards: readonly string[];
  /** The two digits after the amount's point. */
  readonly cents?: string;
}

/** For sandbox mode: makes payments and payouts like a caller. */
export function sandboxRoutes(core: Core, magicValues: readonly MagicValue[]): Routes {
  const scenarios: Scenarios = {
    scenarios: magicValues.map(({ cards, cents, scenario }) => {
      // The page gets no full card number: the gateway fills it in.
      return { ...scenario, card: cards[0]?.slice(-4) ?? "", cents };
    }),
  };
  const making = (make: (order: SandboxOrder, values: Values) => Promise<Answered>) =>
    json(async ({ body }): Promise<SandboxResult> => {
      const order = read(sandboxOrder, await body());
      const values = valuesOf(order, magicValues);
      try {
        return { kind: "answered", ...(await make(order, values)) };
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const { code, message, details } = error;
        if (details.outcomeUnknown) return { kind: "unknown", message };
        const upstreamCode = details.upstream?.code || undefined;
        return { kind: "refused", code, message, upstreamCode };
      }
    });

  return {
    "GET /api/sandbox": json(() => scenarios),
    "POST /api/sandbox/payments": making(async (order, values) => {
      const { payment } = await core.createPayment(paymentOf(order, values), sandboxCall());
      const { details, action } = payment;
      return {
        status: nameOf(PaymentStatusSchema, details?.status ?? 0) ?? "unspecified",
        statusCode: details?.statusCode || undefined,
        actionUrl: action?.value || undefined,
      };
    }),
    "POST /api/sandbox/payouts": making(async (order, values) => {
      const { payout } = await core.requestPayout(payoutOf(order, values), sandboxCall());
      const { status, statusCode } = payout;
      return { status: status?.toLowerCase() || undefined, statusCode: statusCode || undefined };
    }),
  };
}

type Answered = Omit<SandboxResult & { kind: "answered" }, "kind">;

/** A valid card number that is not a magic one, so that the amount decides. */
const plainCard = "4242424242424242";

/** What triggers the scenario: its card or its amount, beside ordinary ones. */
function valuesOf({ scenario, by }: SandboxOrder, magicValues: readonly MagicValue[]) {
  const magic = magicValues.find((value) => value.scenario.name === scenario);
  const [card] = magic?.cards ?? [];
  if (!magic || card === undefined) throw new Refused(400, "scenario: there is no such scenario");
  if (by === "card") return { number: card, amount: "10.00" };
  if (magic.cents === undefined) throw new Refused(400, "by: no amount triggers this scenario");
  return { number: plainCard, amount: `10.${magic.cents}` };
}

type Values = ReturnType<typeof valuesOf>;

function paymentOf({ externalId }: SandboxOrder, { number, amount }: Values) {
  const card = { number, cvv: "123", expMonth: 12, expYear: 2035 };
  return create(CreatePaymentRequestSchema, {
    ...{ amount, currency, externalId, description, mode: PaymentMode.DIRECT },
    customer: { email: "customer@shop.example" },
    paymentMethod: { method: { case: "cc", value: card } },
  });
}

function payoutOf({ externalId, by }: SandboxOrder, { number, amount }: Values) {
  const person = { firstName: "Ivan", lastName: "Franko", externalId: "recipient" };
  return create(RequestPayoutRequestSchema, {
    order: { currency, externalId, originalAmount: amount, description },
    payer: { entityId: "console" },
    payoutType: by === "card" ? "card" : "cash",
    recipient: by === "card" ? { card: { ...person, cardData: { number } } } : { cash: person },
  });
}

const currency = "UAH";
const description = "A trial from the console";

/** A call for the emulator's merchant account. */
const sandboxCall = () => callAs("console", "default", ["payments:write", "payouts:write"]);
