import { watchPayment } from "./gateway.js";

const externalId = new URL(location.href).searchParams.get("order") ?? "";
const token = sessionStorage.getItem(externalId);

const title = document.querySelector("h1");
const text = document.querySelector("#text");
const amount = document.querySelector("#amount");
const state = document.querySelector("#state");
const list = document.querySelector("#events");
document.querySelector("#order").textContent = externalId;

/** Kind, heading and text for the customer, by state of the payment. */
const views = {
  PENDING: ["wait", "Your payment is on its way", "We tell you here as soon as it is done."],
  AUTHORIZED: ["good", "Thank you, the money is reserved", "You pay when your coffee is sent."],
  PAID: ["good", "Thank you, it is paid", "Your coffee is being packed."],
  FAILED: ["bad", "The payment did not go through", "You were not charged."],
  CANCELLED: ["bad", "The payment was cancelled", "The money is yours again."],
  PARTIALLY_REFUNDED: ["good", "A part was given back", "Your bank shows it in a few days."],
  REFUNDED: ["bad", "The payment was given back", "Your bank shows it in a few days."],
  UNKNOWN: ["wait", "We are checking your payment", "Please do not pay again."],
};
const lookedInto = ["wait", "We are looking into your payment", "Our team gets in touch with you."];
const connections = {
  live: "Live",
  reconnecting: "Connection lost, reconnecting…",
  ended: "Ended",
};

if (token === null) {
  show("bad", "This order is not known here", "Open it in the tab in which you paid.");
  setState("ended");
} else {
  watchPayment(externalId, token, {
    onState: setState,
    onEvent(event) {
      const details = event.payment?.details;
      const needsOperator = event.callOutcome === "NEEDS_OPERATOR" && event.state === "UNKNOWN";
      const view = needsOperator ? lookedInto : views[event.state];
      if (view) show(...view);
      if (details?.amount && event.payment.operation === "PAYMENT")
        amount.textContent = `${details.amount} ${details.currency}`;
      addEvent(event);
    },
    onEnd(message) {
      if (message) text.textContent = message;
    },
  });
}

function show(kind, heading, words) {
  document.body.dataset.kind = kind;
  title.textContent = heading;
  text.textContent = words;
}

function setState(name) {
  state.textContent = connections[name];
  state.dataset.state = name;
}

function addEvent({ source, payment, callOutcome, receivedAt }) {
  const item = document.createElement("li");
  const time = document.createElement("time");
  time.dateTime = receivedAt;
  time.textContent = new Date(receivedAt).toLocaleTimeString();
  const { status, statusCode } = payment?.details ?? {};
  const what = status ? `${payment.operation} ${status}` : `call ${callOutcome}`;
  item.append(time, ` ${what}${statusCode ? ` (${statusCode})` : ""} by ${source.toLowerCase()}`);
  list.append(item);
}
