import { watchPayment } from "./gateway.js";
import { orderIn, pageOf } from "./order.js";

const { order, attempt, externalId } = orderIn(location.href);
const token = sessionStorage.getItem(externalId);

const title = document.querySelector("h1");
const text = document.querySelector("#text");
const amount = document.querySelector("#amount");
const state = document.querySelector("#state");
const again = document.querySelector("#again");
const connection = document.querySelector("#connection");
const list = document.querySelector("#events");
document.querySelector("#order").textContent = order;
again.href = pageOf("/demo", { order, attempt: attempt + 1 });

/** Kind, status, heading and text for the customer, by state of the payment. */
const views = {
  PENDING: [
    "wait",
    "In progress",
    "Your payment is on its way",
    "We tell you here as soon as it is done.",
  ],
  AUTHORIZED: [
    "good",
    "Reserved",
    "Thank you, the money is reserved",
    "You pay when your coffee is sent.",
  ],
  PAID: ["good", "Paid", "Thank you, it is paid", "Your coffee is being packed."],
  FAILED: ["bad", "Not paid", "The payment did not go through", "You were not charged."],
  CANCELLED: ["bad", "Cancelled", "The payment was cancelled", "The money is yours again."],
  PARTIALLY_REFUNDED: [
    "good",
    "Partly given back",
    "A part was given back",
    "Your bank shows it in a few days.",
  ],
  REFUNDED: [
    "bad",
    "Given back",
    "The payment was given back",
    "Your bank shows it in a few days.",
  ],
  UNKNOWN: ["wait", "Being checked", "We are checking your payment", "Please do not pay again."],
};
const lookedInto = [
  "wait",
  "Being checked",
  "We are looking into your payment",
  "Our team gets in touch with you.",
];
const connections = {
  live: "This page updates by itself.",
  reconnecting: "Connection lost, reconnecting…",
  ended: "This page is no longer updated.",
};

if (token === null) {
  show("bad", "–", "This order is not known here", "Open it in the tab in which you paid.");
  setConnection("ended");
} else {
  watchPayment(externalId, token, {
    onState: setConnection,
    onEvent(event) {
      const details = event.payment?.details;
      const needsOperator = event.callOutcome === "NEEDS_OPERATOR" && event.state === "UNKNOWN";
      const view = needsOperator ? lookedInto : views[event.state];
      if (view) show(...view);
      again.hidden = event.state !== "FAILED";
      // The reason, in the customer's language.
      if (event.state === "FAILED" && details?.userMessage)
        text.textContent = `${details.userMessage} ${text.textContent}`;
      if (details?.amount && event.payment.operation === "PAYMENT")
        amount.textContent = `${details.amount} ${details.currency}`;
      addEvent(event);
    },
    onEnd(message) {
      if (message) text.textContent = message;
    },
  });
}

function show(kind, status, heading, words) {
  document.body.dataset.kind = kind;
  state.textContent = status;
  title.textContent = heading;
  text.textContent = words;
}

function setConnection(name) {
  connection.textContent = connections[name];
  connection.dataset.state = name;
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
