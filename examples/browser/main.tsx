/**
 * A page that pays and shows the result live, with the typed hooks of clients/graphql.
 *
 * `?gateway=` is the URL of the gateway's public listener; its CORS_ORIGINS must list the origin of
 * this page. In a real shop the backend makes the watch token; here the page may, since the sandbox
 * needs no credentials.
 */
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { Client, fetchExchange, Provider, useMutation } from "urql";
import { WatchTokenDocument } from "../../clients/graphql/src/documents.ts";
import { type PayResult, useLivePayment, usePay } from "../../clients/graphql/src/hooks.ts";

const gateway = new URLSearchParams(location.search).get("gateway") ?? "http://127.0.0.1:4000";
const url = `${gateway}/graphql`;
const client = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });

function Shop() {
  const [externalId] = useState(() => `order-${crypto.randomUUID()}`);
  const [token, setToken] = useState<string>();
  const [result, setResult] = useState<PayResult>();
  const [, makeToken] = useMutation(WatchTokenDocument);
  const { pay, paying } = usePay();

  const submit = async (number: string) => {
    const { data } = await makeToken({ input: { externalId, kind: "PAYMENT" } });
    if (data?.createWatchToken?.__typename === "WatchToken") setToken(data.createWatchToken.token);
    const cc = { number, cvv: "123", expMonth: 12, expYear: new Date().getFullYear() + 5 };
    const order = { externalId, amount: "25.00", currency: "UAH", mode: "DIRECT" as const };
    const customer = { email: "jo@example.com" };
    setResult(
      await pay(
        { ...order, customer, paymentMethod: { method: { cc } } },
        `${externalId}-${number}`,
      ),
    );
  };
  return (
    <main>
      <h1>Pay 25.00 UAH</h1>
      <button type="button" disabled={paying} onClick={() => submit("4111111111111111")}>
        Pay
      </button>
      <button type="button" disabled={paying} onClick={() => submit("4000000000000614")}>
        Pay with an empty card
      </button>
      <button type="button" disabled={paying} onClick={() => submit("4000000000000770")}>
        Pay with a blocked card
      </button>
      {result && <p role="status">{words(result)}</p>}
      {token && <Live externalId={externalId} token={token} />}
    </main>
  );
}

function Live({ externalId, token }: { externalId: string; token: string }) {
  const { state, connection } = useLivePayment(url, externalId, token);
  return (
    <p>
      {connection}: {state?.toLowerCase() ?? "nothing yet"}
    </p>
  );
}

/** Covers every type of result: the compiler reports a missing case. */
function words(result: PayResult): string {
  switch (result.__typename) {
    case "Payment":
      return paymentWords(result);
    case "PaymentServiceError":
      return `Declined: ${result.code}`;
    case "RateLimitError":
      return `Please try again in ${result.retryAfterSeconds ?? 1} s`;
    case "OutcomeUnknownError":
      return "We are checking your payment, please do not pay again";
    case "InvalidInputError":
      return result.fields.map(({ path, message }) => `${path}: ${message}`).join(", ");
  }
}

/** A decline may also come as a normal answer. */
function paymentWords(payment: Extract<PayResult, { __typename: "Payment" }>): string {
  const { state, action, details } = payment;
  if (state === "PAID") return "Thank you";
  if (state === "FAILED") return `Declined: ${details?.statusCode}`;
  return action ? `Confirm at ${action.value}` : "Your payment is under way";
}

createRoot(document.querySelector("#root")!).render(
  <Provider value={client}>
    <Shop />
  </Provider>,
);
