import { create } from "@bufbuild/protobuf";
import type { Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import { ResendCallbackRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { GetPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Observations, Report } from "../report.ts";
import type { PaymentAction, PaymentActionResult, ReconcilerSettings } from "./console-api.ts";
import { openCallsOf } from "./history.ts";
import { callAs, type Operator } from "./operator.ts";

export interface PaymentActionsOptions {
  readonly core: Core;
  readonly ledger: Ledger;
  readonly reconciler: ReconcilerSettings;
  readonly report: Report;
}

/** What an operator can ask the payments service about a payment or payout. No money moves. */
export function createPaymentActions(options: PaymentActionsOptions) {
  const { core, ledger, reconciler, report } = options;
  const note = (
    { name: operator }: Operator,
    action: Observations["operatorAsked"]["action"],
    about: PaymentAction,
  ) => report("operatorAsked", { operator, action, ...about });
  return {
    /**
     * Looks an open call up at once instead of later; a payout without an open call is read from
     * the service.
     */
    async lookUp(operator: Operator, action: PaymentAction): Promise<PaymentActionResult> {
      const { account, kind, externalId } = action;
      note(operator, "look up", action);
      const open = await openCallsOf(ledger, account, kind, externalId);
      const next = open.filter(
        ({ needsOperator }) => reconciler.afterMs !== undefined && !needsOperator,
      );
      for (const intent of next) {
        const { checks, notFound } = intent;
        await ledger.looked(account, intent, { checks, notFound, inMs: 0 });
      }
      if (next.length > 0) return { kind: "scheduled" };
      if (kind === "payment") {
        return { kind: "refused", message: "no look-up is due: ask for the callback again" };
      }
      const request = create(GetPayoutRequestSchema, { externalId });
      const call = callAs(operator.name, account, ["payouts:read"]);
      return asked(() => core.getPayout(request, call));
    },

    /** Asks the service to send the callback of a payment's latest operation again. */
    async resendCallback(operator: Operator, action: PaymentAction): Promise<PaymentActionResult> {
      const { account, kind, externalId } = action;
      if (kind === "payout") {
        return { kind: "refused", message: "the service sends no callback of a payout again" };
      }
      note(operator, "resend callback", action);
      const request = create(ResendCallbackRequestSchema, { externalId });
      const call = callAs(operator.name, account, ["callbacks:resend"]);
      return asked(() => core.resendCallback(request, call));
    },
  };
}

async function asked(ask: () => Promise<unknown>): Promise<PaymentActionResult> {
  try {
    await ask();
    return { kind: "asked" };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { kind: "refused", message: error.message };
  }
}
