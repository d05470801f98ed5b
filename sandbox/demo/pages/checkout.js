import { graphql, RefusedError } from "./gateway.js";
import { orderIn, pageOf } from "./order.js";

const form = document.querySelector("form");
const choices = form.querySelector("fieldset");
const button = form.querySelector("button");
const problem = document.querySelector("#problem");
const steps = document.querySelector("#steps");

/**
 * A payment that was sent but got no answer, so it may have been made. The page sends it again with
 * the same Idempotency-Key, even after a reload, so that it is made only once. It never stores card
 * data, only the index of the chosen card.
 */
let unanswered = JSON.parse(sessionStorage.getItem("unanswered"));
const noAnswer = "Your payment has no answer yet. Press Pay to ask for it again.";

// The order stays the same while the customer tries to pay it, also with another card.
const current = unanswered?.current ?? orderIn(location.href);
const { order, externalId } = current;
document.querySelector("#order").textContent = order;
if (unanswered) {
  form.elements.card[unanswered.choice].checked = true;
  show(noAnswer);
}

const problems = [
  "PaymentServiceError",
  "RateLimitError",
  "InvalidInputError",
  "OutcomeUnknownError",
];
const told = problems.map((type) => `... on ${type} { userMessage }`).join(" ");

const watchToken = `mutation WatchToken($id: ID!) {
  createWatchToken(input: { externalId: $id, kind: PAYMENT, ttlSeconds: 900 }) {
    __typename
    ... on WatchToken { token }
    ${told}
  }
}`;

const pay = `mutation Pay($input: CreatePaymentInput!) {
  createPayment(input: $input) {
    __typename
    ... on Payment { state action { value } details { userMessage } }
    ${told}
  }
}`;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  problem.hidden = true;
  try {
    await checkOut();
  } catch (error) {
    if (error instanceof RefusedError) keep(null);
    if (error instanceof RefusedError) show(error.message);
    else show(unanswered ? noAnswer : "The shop cannot be reached. Please try again.");
  }
  offerToPay();
});

// The HTML disables both, since a click before this script is loaded would do nothing.
offerToPay();

function offerToPay() {
  choices.disabled = unanswered !== null;
  button.disabled = false;
}

async function checkOut() {
  step("createWatchToken", "the shop's backend gives the page a token for this one payment");
  const { createWatchToken } = await graphql(watchToken, { id: externalId });
  if (createWatchToken.__typename !== "WatchToken") return show(createWatchToken.userMessage);
  sessionStorage.setItem(externalId, createWatchToken.token);

  step("createPayment", `${unanswered ? "again with the same" : "with a new"} Idempotency-Key`);
  const choice = [...form.elements.card].findIndex(({ checked }) => checked);
  keep(unanswered ?? { current, key: crypto.randomUUID(), choice });
  const { key } = unanswered;
  const input = inputOf(form.elements.card[unanswered.choice].value);
  const { createPayment: result } = await graphql(pay, { input }, { "idempotency-key": key });
  keep(null);
  step(result.__typename, "the result of the mutation");
  switch (result.__typename) {
    case "Payment":
      // A decline may also come as a normal answer.
      if (result.state === "FAILED") return show(result.details.userMessage);
      return result.action ? location.assign(result.action.value) : toResult();
    case "OutcomeUnknownError":
      // The money may have moved: the customer must not pay again. The watch shows the outcome.
      return toResult();
    default:
      return show(result.userMessage);
  }
}

function keep(payment) {
  unanswered = payment;
  if (payment) sessionStorage.setItem("unanswered", JSON.stringify(payment));
  else sessionStorage.removeItem("unanswered");
}

function inputOf(choice) {
  const input = {
    externalId,
    amount: "250.00",
    currency: "UAH",
    description: "Coffee beans, 1 kg",
    customer: { email: "jo@example.com" },
    resultUrl: pageOf("/demo/result", current),
  };
  if (choice === "hosted")
    return { ...input, mode: "HOSTED", paymentMethod: { type: "CC_NUMBER" } };
  const cc = { number: choice, cvv: "123", expMonth: 12, expYear: new Date().getFullYear() + 5 };
  return { ...input, mode: "DIRECT", paymentMethod: { method: { cc } } };
}

function toResult() {
  location.assign(pageOf("/demo/result", current));
}

function show(message) {
  problem.textContent = message;
  problem.hidden = false;
}

function step(name, meaning) {
  const item = document.createElement("li");
  const code = document.createElement("code");
  code.textContent = name;
  item.append(code, ` ${meaning}`);
  steps.append(item);
}
