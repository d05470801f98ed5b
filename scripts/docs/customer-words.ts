import type { Reading } from "../../src/upstream/error-codes.ts";

/**
 * The text that a shop may show its customer for an error code. It never says whether a card is
 * lost, blocked or suspected: only the bank may tell its holder.
 */
export function customerWords(code: string, reading: Reading): string {
  const own = byCode[code];
  if (own) return own;
  if (reading.leavesOpen) return "We are checking your payment. Please do not pay again.";
  switch (reading.code) {
    case "ALREADY_EXISTS":
      return "This is done already.";
    case "RESOURCE_EXHAUSTED":
      return "Please try again in a moment.";
    case "UNAUTHENTICATED":
      return "Please sign in again.";
    case "NOT_FOUND":
    case "PERMISSION_DENIED":
    case "INTERNAL":
      return "Something is wrong on our side. Please try again later or contact us.";
    default:
      return reading.retry === "otherCard"
        ? "The payment was declined. Please use another card or ask your bank."
        : "The payment is not possible like this.";
  }
}

const otherCard = "Please use another card.";

const byCode: Readonly<Record<string, string>> = {
  insufficient_funds: `There is not enough money on the card. ${otherCard}`,
  card_expired: `The card has expired. ${otherCard}`,
  wrong_cvv: "The security code is wrong. Please check it and try again.",
  cvv_is_required: "Please enter the card's security code.",
  wrong_card_number: "The card number is wrong. Please check it and try again.",
  wrong_account_number: "The account number is wrong. Please check it and try again.",
  invalid_card_data: "Please check the card's details and try again.",
  invalid_phone_number: "Please check the phone number and try again.",
  invalid_recipient_name: "Please check the recipient's name and try again.",
  wrong_pin: "The PIN is wrong. Please try again.",
  wrong_sms_password: "The code is wrong. Please try again.",
  wrong_authorization_code: "The code is wrong. Please try again.",
  invalid_verification_code: "The code is wrong. Please try again.",
  failed_to_send_sms: "We could not send you a code. Please try again later.",
  "3ds_not_supported": `The card does not support the confirmation that is needed. ${otherCard}`,
  wrong_cavv: "Your bank did not confirm the payment. Please try again or use another card.",
  failed_to_verify_card: "Your bank did not confirm the card. Please use another card.",
  confirmation_timeout: "The confirmation took too long. Please try again.",
  session_expired: "The payment page has expired. Please try again.",
  banking_application_is_not_installed: "Please install your bank's app, or pay by card.",
  transaction_amount_limit: `The amount is above the card's limit. ${otherCard}`,
  transaction_limit_exceeded: `The card's limit is reached. ${otherCard}`,
  daily_card_usage_limit_reached: `The card's daily limit is reached. ${otherCard}`,
  card_branch_daily_limit_reached: `The card's daily limit is reached. ${otherCard}`,
  card_not_supported: `This kind of card is not accepted. ${otherCard}`,
  card_type_is_not_supported: `This kind of card is not accepted. ${otherCard}`,
  payment_system_not_supported: `This kind of card is not accepted. ${otherCard}`,
  country_not_supported: `Cards of this country are not accepted. ${otherCard}`,
  bank_is_not_supported: `Cards of this bank are not accepted. ${otherCard}`,
  transaction_is_canceled_by_payer: "You cancelled the payment. You can try again.",
  "3ds_required": "Your bank asks you to confirm the payment. Please try again and confirm it.",
  invalid_token: "The payment was declined. Please enter the card again or use another one.",
  failed_to_load_wallet: "Your saved cards cannot be used right now. Please enter the card.",
  insufficient_funds_for_refund: "The refund is not possible right now. Please contact us.",
  subscription_successful: "We are checking your subscription. Please do not subscribe again.",
  unsubscribed_successfully: "Your subscription has ended.",
  transaction_already_paid: "This order is paid already.",
  order_expired: "The order has expired.",
  order_canceled: "The order was cancelled.",
  payment_was_refunded: "The payment was refunded already.",
  payment_method_already_confirmed: "The card is confirmed already.",
  subscription_already_exists: "You have this subscription already.",
  subscription_not_active: "The subscription is not active.",
  subscription_auto_renew_locked: "The renewal of this subscription cannot be changed.",
  card_not_found: "This card is no longer saved. Please enter it again.",
};
