import { type Card, payingWith } from "../ledger/cards.ts";
import { primaryOperation, refuseIfPaid } from "../ledger/ledger.ts";
import { newPayment, type PaymentInput } from "../ledger/new-records.ts";
import { type Scenario, scenarioFor, success } from "../ledger/scenarios.ts";
import { ApiError } from "./api-error.ts";
import { readBody } from "./fields.ts";
import { type HttpResponse, json, type Route } from "./http.ts";
import type { Parts } from "./parts.ts";
import type { CardDetails } from "./payment-method-request.ts";
import { type NewPayment, newPaymentBody } from "./payment-request.ts";
import { paymentBody } from "./payment-view.ts";

/** POST payments/v1/new, in its three modes. */
export function createNewPaymentRoute(parts: Parts): Route {
  const { ledger, vault, wallets, charge, clock, baseUrl } = parts;

  function payDirectly(request: NewPayment): HttpResponse {
    const card = cardOf(request);
    return charge.pay({ ...inputOf(request), card }, "payment", directScenario(request, card));
  }

  function openCheckout(request: NewPayment): HttpResponse {
    const input = { ...inputOf(request), waitingFor: "card" } as const;
    const payment = newPayment(input, "payment", success, new Date(clock.now()));
    const operation = primaryOperation(payment);
    operation.statusCode = "waiting_for_redirect";
    ledger.addPayment(payment);
    return json(paymentBody(payment, operation, baseUrl));
  }

  function cardOf(request: NewPayment): Card {
    const { details } = request;
    if (details?.by === "number") return vault.keep(details.number, details.month, details.year);
    if (details?.by === "token") {
      const card = vault.byToken(details.token);
      if (!card) throw new ApiError("invalid_card_token", { param: details.param });
      return card;
    }
    if (details?.by === "option") {
      return walletCard(requireCustomerId(request), details.optionId, details);
    }
    return vault.keep("4111111111111111", 12, 2099);
  }

  function walletCard(customerId: string, optionId: string, { param }: CardDetails): Card {
    const entry = wallets.item(customerId, optionId);
    if (!entry) throw new ApiError("payment_method_not_found", { param });
    if (!entry.isConfirmed) throw new ApiError("card_verification_required", { param });
    return entry.card;
  }

  return {
    method: "POST",
    path: "/api/payments/v1/new",
    handle(httpRequest) {
      const request = readBody(newPaymentBody, httpRequest.body);
      if (request.saveToWallet) requireCustomerId(request);
      refuseIfPaid(ledger, request.externalId);
      return request.mode === "direct" ? payDirectly(request) : openCheckout(request);
    },
  };
}

function directScenario({ amount, details }: NewPayment, card: Card): Scenario {
  // The sandbox cannot read a device wallet's token, so only the amount can be magic.
  const paying = details?.by === "device" ? undefined : payingWith(card);
  const scenario = scenarioFor(amount, paying);
  // A card that would succeed at once has to pass 3DS first if the request asks for it.
  const asks = details?.use3ds && scenario.name === "success";
  return asks ? { ...scenario, challenge: true } : scenario;
}

function inputOf(request: NewPayment): PaymentInput {
  const { mode: _, initRecurrent, details: __, ...input } = request;
  return initRecurrent ? { ...input, recurrentId: crypto.randomUUID() } : input;
}

function requireCustomerId({ customer }: NewPayment): string {
  if (!customer.externalId) {
    throw new ApiError("customer_id_not_passed", { param: "customer.external_id" });
  }
  return customer.externalId;
}
