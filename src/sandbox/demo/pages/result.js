import { watchPayment } from "./gateway.js";

const externalId = new URL(location.href).searchParams.get("order") ?? "";
const token = sessionStorage.getItem(externalId);

const title = document.querySelector("h1");
const text = document.querySelector("#text");
const amount = document.querySelector("#amount");
const state = document.querySelector("#state");
const list = document.querySelector("#events");
document.querySelector("#order").textContent = externalId;

const views = {
  INIT: ["wait", "Your payment is on its way", "We tell you here as soon as it is done."],
  PENDING: ["wait", "Your payment is on its way", "We tell you here as soon as it is done."],
  SUCCESS: ["good", "Thank you, it is paid", "Your coffee is being packed."],
  FAILURE: ["bad", "The payment did not go through", "You were not charged."],
  CHECKING: ["wait", "We are checking your payment", "Please do not pay again."],
  NOBODY_KNOWS: ["wait", "We are looking into your payment", "Our team gets in touch with you."],
};
const outcomes = { UNKNOWN: "CHECKING", NEEDS_OPERATOR: "NOBODY_KNOWS", NOT_DONE: "FAILURE" };
const states = {
  live: "Live",
  reconnecting: "Connection lost, reconnecting…",
  ended: "Ended",
};

let paid = false;
if (token === null) {
  show("bad", "This order is not known here", "Open it in the tab in which you paid.");
  setState("ended");
} else {
  watchPayment(externalId, token, {
    onState: setState,
    onEvent(event) {
      const details = event.payment?.details;
      const view = views[details?.status ?? outcomes[event.callOutcome]];
      // A late failure of an earlier attempt, or a refund, takes nothing back.
      if (view && !paid) show(...view);
      paid ||= details?.status === "SUCCESS";
      if (details?.amount) amount.textContent = `${details.amount} ${details.currency}`;
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
  state.textContent = states[name];
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
