import * as z from "zod";
import { isCardNumber } from "../ledger/cards.ts";
import { ApiError } from "./api-error.ts";
import {
  amountText,
  coded,
  currency,
  email,
  filled,
  httpUrl,
  matching,
  text,
  texts,
  uuid,
} from "./fields.ts";

/** The fields that the sandbox uses of the body of POST payouts/v1/request-payout. */
export type NewPayout = z.output<typeof newPayoutBody>;

const person = {
  email: email.optional(),
  first_name: filled,
  last_name: filled,
  phone: matching("an international phone number", /^\+?[\d ()-]{5,25}$/).optional(),
  rid: uuid.optional(),
  ...texts("middle_name", "ipn", "external_id"),
};

const cardPath = "recipient.card.card_data";

const cardData = z
  .object({
    option_id: text.optional(),
    number: text
      .refine((number) => number === "" || isCardNumber(number), coded("wrong_card_number"))
      .default(""),
    token: text.default(""),
  })
  .refine(({ number, token }) => number === "" || token === "", {
    path: ["token"],
    message: "cannot be given together with number",
  })
  .transform(({ number, token }) => {
    if (number !== "") return { number };
    if (token !== "") return { token, param: `${cardPath}.token` };
    throw new ApiError("missed_payout_method_data", { param: `${cardPath}.number` });
  });

/** The whole body by the spec's tables. */
export const newPayoutBody = z
  .object({
    order: z.object({
      external_id: filled,
      original_amount: amountText,
      ...{ currency, description: filled },
      callback_url: httpUrl.optional(),
    }),
    payout_type: z.enum(["card", "cash"]),
    recipient: z.object({
      card: z.object({ ...person, card_data: cardData.optional() }).optional(),
      cash: z.object(person).optional(),
    }),
    payer: z.object({ entity_id: filled }),
  })
  .superRefine(({ payout_type, recipient }, { addIssue }) => {
    if (recipient[payout_type]) return;
    addIssue({ code: "custom", path: ["recipient", payout_type], message: "is required" });
  })
  .transform(({ order, payout_type: payoutType, recipient, payer }) => {
    const to = recipient[payoutType]!;
    return {
      externalId: order.external_id,
      originalAmount: order.original_amount,
      ...{ currency: order.currency, description: order.description },
      callbackUrl: order.callback_url,
      entityId: payer.entity_id,
      payoutType,
      recipient: {
        ...{ email: to.email, phone: to.phone, rid: to.rid, ipn: to.ipn },
        ...{ firstName: to.first_name, lastName: to.last_name, middleName: to.middle_name },
        externalId: to.external_id,
      },
      card: payoutType === "card" ? recipient.card?.card_data : undefined,
    };
  });
