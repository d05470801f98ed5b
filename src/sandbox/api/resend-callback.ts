import { attemptsOf, type Ledger } from "../ledger/ledger.ts";
import type { PaymentFlow } from "../ledger/payment-flow.ts";
import { ApiError } from "./api-error.ts";
import { fieldsOf, json, type Route } from "./http.ts";

/** POST payments/v1/callback/resend: the callback of the given or else of the latest operation. */
export function createResendCallbackRoute(ledger: Ledger, flow: PaymentFlow): Route {
  return {
    method: "POST",
    path: "/api/payments/v1/callback/resend",
    handle(request) {
      const body = fieldsOf(request);
      const externalId = body.requiredText("external_id");
      const kind = body.text("operation");
      const latest = attemptsOf(ledger, externalId)
        .flatMap((payment) => payment.operations.map((operation) => ({ payment, operation })))
        .filter(({ operation }) => kind === undefined || operation.kind === kind)
        .toSorted((a, b) => a.operation.createdAt.getTime() - b.operation.createdAt.getTime())
        .at(-1);
      if (!latest) throw new ApiError("transaction_not_found", { param: "operation" });
      const { payment, operation } = latest;
      if (operation.callbackUrl === undefined) {
        const { paymentId } = payment;
        throw new ApiError("action_not_allowed", { message: "It has no callback_url", paymentId });
      }
      flow.resend(payment, operation);
      return json('{"message":"The callback is on its way"}');
    },
  };
}
