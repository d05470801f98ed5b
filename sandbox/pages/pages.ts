import type { HttpResponse } from "../api/http.ts";
import { describeStatus, pagePath } from "../api/payment-view.ts";
import { primaryOperation } from "../ledger/ledger.ts";
import type {
  PaymentOperationRecord,
  PaymentRecord,
  PayoutRecord,
  ProductRecord,
} from "../ledger/records.ts";
import { type Html, html } from "./html.ts";
import { pageAnswer } from "./page-layout.ts";

/** The issuing bank's 3DS page: the customer approves or declines. */
export function challengePage(payment: PaymentRecord): HttpResponse {
  const { colorMode, card } = payment;
  return pageAnswer({
    title: "Confirm your payment",
    colorMode,
    body: html`<h1>Confirm your payment</h1>
<p class="soft">Your bank asks you to confirm this payment (3DS).</p>
${amountLine(payment)}
<dl>
${row("Order", payment.externalId)}
${row("Description", payment.description)}
${row("Card", card?.mask)}
</dl>
<form method="post">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="decline" class="second">Decline</button>
</form>`,
  });
}

/** The page of a hosted or express checkout: the customer enters a card. */
export function checkoutPage(payment: PaymentRecord, problem?: string): HttpResponse {
  const { colorMode, products } = payment;
  return pageAnswer({
    title: "Checkout",
    colorMode,
    status: problem === undefined ? 200 : 400,
    body: html`<h1>Checkout</h1>
${amountLine(payment)}
<dl>
${row("Order", payment.externalId)}
${row("Description", payment.description)}
${products.map(productRow)}
</dl>
${problem === undefined ? undefined : html`<p class="failure" role="alert">${problem}</p>`}
<form method="post" autocomplete="off">
<label>Card number
<input name="number" inputmode="numeric" value="4111 1111 1111 1111" required>
</label>
<div class="row">
<label>Expiry (MM/YY)
<input name="expiry" value="12/35" required>
</label>
<label>CVV
<input name="cvv" inputmode="numeric" value="123" required>
</label>
</div>
<button name="decision" value="pay">Pay ${payment.amount} ${payment.currency}</button>
<button name="decision" value="cancel" class="second" formnovalidate>Cancel</button>
</form>`,
  });
}

/** The payment's status: the last page for a payment without a `result_url`. */
export function resultPage(payment: PaymentRecord): HttpResponse {
  const { status, statusCode } = primaryOperation(payment);
  return pageAnswer({
    title: results[status],
    colorMode: payment.colorMode,
    body: html`<h1 class="${status}">${results[status]}</h1>
${amountLine(payment)}
<dl>
${row("Order", payment.externalId)}
${row("Status", describeStatus(statusCode))}
${row("Code", statusCode)}
</dl>`,
  });
}

/** The receipt of a successful payment. */
export function receiptPage(payment: PaymentRecord): HttpResponse {
  const { processedAt, rrn } = primaryOperation(payment);
  return pageAnswer({
    title: "Receipt",
    body: html`<h1>Receipt</h1>
${amountLine(payment)}
<dl>
${row("Order", payment.externalId)}
${row("Card", payment.card?.mask)}
${row("Paid", processedAt?.toISOString())}
${row("Reference", rrn)}
${payment.products.map(productRow)}
</dl>`,
  });
}

/** All payments and payouts, newest first, with links to the pages that wait for the customer. */
export function indexPage(
  payments: readonly PaymentRecord[],
  payouts: readonly PayoutRecord[],
): HttpResponse {
  return pageAnswer({
    title: "Payments",
    wide: true,
    body: html`<h1>Payments</h1>
${payments.length === 0 ? html`<p class="soft">None yet.</p>` : paymentTable(payments)}
<h2>Payouts</h2>
${payouts.length === 0 ? html`<p class="soft">None yet.</p>` : payoutTable(payouts)}`,
  });
}

export function notFoundPage(): HttpResponse {
  const body = html`<h1>Not found</h1>
<p>There is no such payment here, or it is over.</p>`;
  return pageAnswer({ title: "Not found", status: 404, body });
}

function paymentTable(payments: readonly PaymentRecord[]): Html {
  return html`<table>
<thead><tr><th>Order</th><th>Amount</th><th>Operation</th><th>State</th><th>Customer</th></tr></thead>
<tbody>
${payments.flatMap((payment) =>
  payment.operations.map(
    (operation, index) => html`<tr>
<td class="wrap">${payment.externalId}</td>
<td class="number">${operation.amount} ${payment.currency}</td>
<td>${operation.kind}</td>
<td class="${operation.status}">${stateOf(operation)}</td>
<td>${index === 0 ? customerLink(payment) : undefined}</td>
</tr>
`,
  ),
)}
</tbody></table>`;
}

/** The state in words, with the reason of a failure. */
function stateOf({ status, statusCode }: Pick<PaymentOperationRecord, "status" | "statusCode">) {
  return status === "failure" ? `Failed: ${describeStatus(statusCode)}` : states[status];
}

const states = { init: "Created", pending: "In progress", success: "Successful" } as const;

function customerLink(payment: PaymentRecord): Html | undefined {
  const path = pagePath(payment);
  const name = payment.waitingFor === "card" ? "Checkout page" : "3DS page";
  return path === undefined ? undefined : html`<a href="${path}">${name}</a>`;
}

function payoutTable(payouts: readonly PayoutRecord[]): Html {
  return html`<table>
<thead><tr><th>Payout</th><th>Amount</th><th>Type</th><th>State</th></tr></thead>
<tbody>
${payouts.map(
  (payout) => html`<tr>
<td class="wrap">${payout.externalId}</td>
<td class="number">${payout.originalAmount} ${payout.currency}</td>
<td>${payout.payoutType}</td>
<td class="${payout.status}">${stateOf(payout)}</td>
</tr>
`,
)}
</tbody></table>`;
}

function amountLine({ amount, currency }: PaymentRecord): Html {
  return html`<p class="amount">${amount} ${currency}</p>`;
}

function row(name: string, value: string | undefined): Html | undefined {
  return value === undefined ? undefined : html`<dt>${name}</dt><dd>${value}</dd>`;
}

function productRow({ name, quantity, netAmount, currency }: ProductRecord): Html | undefined {
  const price = [quantity && `${quantity} ×`, netAmount, netAmount && currency];
  return row(name ?? "Product", price.filter(Boolean).join(" "));
}

const results = {
  init: "Payment in progress",
  pending: "Payment in progress",
  success: "Payment successful",
  failure: "Payment failed",
} as const;
