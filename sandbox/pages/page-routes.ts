import type { HttpResponse, Route, SandboxRequest } from "../api/http.ts";
import type { Parts } from "../api/parts.ts";
import { pagePath } from "../api/payment-view.ts";
import { cvv, isCardNumber } from "../ledger/cards.ts";
import { primaryOperation, succeeded } from "../ledger/ledger.ts";
import type { PaymentRecord } from "../ledger/records.ts";
import { scenarioFor } from "../ledger/scenarios.ts";
import { redirect } from "./page-layout.ts";
import {
  challengePage,
  checkoutPage,
  indexPage,
  notFoundPage,
  receiptPage,
  resultPage,
} from "./pages.ts";

/** The customers' pages. As on the real ones, anybody who has a page's URL may use it. */
export function createPageRoutes({ ledger, vault, flow }: Parts): Route[] {
  function page(
    method: "GET" | "POST",
    name: string,
    show: (payment: PaymentRecord, request: SandboxRequest) => HttpResponse,
  ): Route {
    return {
      method,
      path: `/${name}/{page_token}`,
      handle(request) {
        const payment = ledger.paymentByPage(request.params.page_token ?? "");
        return payment ? show(payment, request) : notFoundPage();
      },
    };
  }

  function decideChallenge(payment: PaymentRecord, request: SandboxRequest): HttpResponse {
    if (payment.waitingFor !== "challenge") return goOn(payment);
    const operation = primaryOperation(payment);
    const decision = new URLSearchParams(request.body).get("decision");
    if (decision === "approve") flow.settle(payment, operation, operation.scenario.outcome);
    if (decision === "decline") flow.settle(payment, operation, "transaction_is_canceled_by_payer");
    return goOn(payment);
  }

  function decideCheckout(payment: PaymentRecord, request: SandboxRequest): HttpResponse {
    if (payment.waitingFor !== "card") return goOn(payment);
    const operation = primaryOperation(payment);
    const form = new URLSearchParams(request.body);
    if (form.get("decision") === "cancel") {
      flow.settle(payment, operation, "transaction_is_canceled_by_payer");
      return goOn(payment);
    }
    const entered = readCard(form);
    if ("problem" in entered) return checkoutPage(payment, entered.problem);
    const card = vault.keep(entered.number, entered.month, entered.year);
    const { expiresAt } = card;
    payment.card = card;
    operation.scenario = scenarioFor(payment.amount, { number: entered.number, expiresAt });
    flow.begin(payment, operation);
    return goOn(payment);
  }

  return [
    {
      method: "GET",
      path: "/",
      handle: () =>
        indexPage(
          [...ledger.payments()].reverse().slice(0, 200),
          [...ledger.payouts()].reverse().slice(0, 200),
        ),
    },
    page("GET", "3ds", (payment) =>
      payment.waitingFor === "challenge" ? challengePage(payment) : goOn(payment),
    ),
    page("POST", "3ds", decideChallenge),
    page("GET", "checkout", (payment) =>
      payment.waitingFor === "card" ? checkoutPage(payment) : goOn(payment),
    ),
    page("POST", "checkout", decideCheckout),
    page("GET", "result", resultPage),
    page("GET", "receipt", (payment) =>
      succeeded(payment) ? receiptPage(payment) : notFoundPage(),
    ),
  ];
}

/** Redirects to the payment's next page. */
function goOn(payment: PaymentRecord): HttpResponse {
  return redirect(pagePath(payment) ?? payment.resultUrl ?? `/result/${payment.pageToken}`);
}

type EnteredCard =
  | { readonly number: string; readonly month: number; readonly year: number }
  | { readonly problem: string };

function readCard(form: URLSearchParams): EnteredCard {
  const number = (form.get("number") ?? "").replaceAll(/[\s-]/g, "");
  if (!isCardNumber(number)) return { problem: "This is not a card number." };
  const expiry = /^\s*(\d{1,2})\s*\/\s*(?:20)?(\d{2})\s*$/.exec(form.get("expiry") ?? "");
  const month = Number(expiry?.[1]);
  if (!(month >= 1 && month <= 12)) return { problem: "The expiry has to be a month and a year." };
  if (!cvv.test((form.get("cvv") ?? "").trim())) return { problem: "The CVV has 3 or 4 digits." };
  return { number, month, year: Number(expiry?.[2]) };
}
