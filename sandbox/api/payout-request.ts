import { checkCardNumber } from "../ledger/cards.ts";
import { ApiError, invalid } from "./api-error.ts";
import { email, type Fields, httpUrl, type TextFormat, uuid } from "./fields.ts";

/** The fields that the sandbox uses of the body of POST payouts/v1/request-payout. */
export type NewPayout = ReturnType<typeof readNewPayout>;

/** Checks the whole body against the spec's tables. @throws ApiError with the wrong field's path */
export function readNewPayout(body: Fields) {
  const order = body.requiredObject("order");
  const payoutType = body.requiredChoice("payout_type", ["card", "cash"]);
  const recipient = body.requiredObject("recipient").requiredObject(payoutType);
  return {
    externalId: order.requiredText("external_id"),
    originalAmount: order.requiredAmountText("original_amount"),
    currency: order.requiredCurrency("currency"),
    description: order.requiredText("description"),
    callbackUrl: order.text("callback_url", httpUrl),
    entityId: body.requiredObject("payer").requiredText("entity_id"),
    payoutType,
    recipient: readPerson(recipient),
    card: payoutType === "card" ? readCard(recipient.object("card_data")) : undefined,
  };
}

function readPerson(person: Fields) {
  return {
    email: person.text("email", email),
    firstName: person.requiredText("first_name"),
    lastName: person.requiredText("last_name"),
    middleName: person.text("middle_name"),
    phone: person.text("phone", phone),
    rid: person.text("rid", uuid),
    ipn: person.text("ipn"),
    externalId: person.text("external_id"),
  };
}

/** Number or token: exactly one of them must be given. */
function readCard(card: Fields | undefined) {
  if (!card) return undefined;
  card.text("option_id");
  const number = card.text("number") || undefined;
  const token = card.text("token") || undefined;
  if (number !== undefined && token !== undefined) {
    throw invalid(card.path("token"), "cannot be given together with number");
  }
  if (number !== undefined) return { number: checkCardNumber(number, card.path("number")) };
  if (token !== undefined) return { token, param: card.path("token") };
  throw new ApiError("missed_payout_method_data", { param: card.path("number") });
}

const phone: TextFormat = {
  name: "an international phone number",
  test: (text) => /^\+?[\d ()-]{5,25}$/.test(text),
};
