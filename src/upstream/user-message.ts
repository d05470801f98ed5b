import { create } from "@bufbuild/protobuf";
import type { GatewayError } from "../errors.ts";
import { ErrorType, UpstreamErrorSchema } from "../gen/payments/v1/error_pb.ts";
import { type ListedCode, readingOf, saysDeclined } from "./error-codes.ts";

/** The languages in which customers are told; the first one unless they ask for another. */
const locales = ["en", "uk"] as const;
export type Locale = (typeof locales)[number];

/** What a shop may show its customer. */
export interface UserMessage {
  readonly locale: Locale;
  readonly message: string;
}

/** The parts of an error that decide what the customer is told. */
export interface ToldError extends Pick<GatewayError, "code"> {
  readonly details: Pick<GatewayError["details"], "upstream" | "outcomeUnknown">;
}

/**
 * What to tell the customer about an error, in the language that the header `Accept-Language` asks
 * for, or else in English. It never says whether a card is lost, blocked or suspected, since only
 * the bank may tell its holder, and nothing of what is wrong inside.
 */
export function userMessage(
  error: ToldError,
  acceptLanguage: string | null | undefined,
): UserMessage {
  const locale = acceptLanguage ? localeOf(acceptLanguage) : locales[0];
  return { locale, message: textIn(languages[locale], error) };
}

/** The same about a payment whose status is failure, by its status code. */
export function declineMessage(
  statusCode: string | undefined,
  acceptLanguage: string | null | undefined,
): UserMessage {
  const reading = readingOf(statusCode ?? "");
  // A code of a payment in progress or paid, beside that status, says nothing.
  const isKnown = reading !== undefined && !reading.leavesOpen;
  const code = isKnown ? reading.code : "FAILED_PRECONDITION";
  const upstream = create(UpstreamErrorSchema, {
    ...(isKnown && { code: statusCode ?? "" }),
    type: ErrorType.PAYMENT_ERROR,
  });
  return userMessage({ code, details: { upstream } }, acceptLanguage);
}

function textIn(
  { general, ofCodes }: typeof en,
  { code, details: { upstream, outcomeUnknown } }: ToldError,
): string {
  if (outcomeUnknown) return general.checking;
  const byCode = general[textsByErrorCode[code]];
  // The key of the call was used before: an earlier call may have moved the money.
  if (!upstream) return code === "ALREADY_EXISTS" ? general.checking : byCode;
  // What is wrong is the customer's own token, whatever the code says of a card.
  if (code === "UNAUTHENTICATED") return byCode;
  const { code: serviceCode = "" } = upstream;
  const toldAs = sameText.get(serviceCode) ?? serviceCode;
  if (Object.hasOwn(ofCodes, toldAs)) return ofCodes[toldAs as keyof typeof ofCodes];
  if (readingOf(serviceCode)?.retry === "lookUp") return general.checking;
  return code === "FAILED_PRECONDITION" && saysDeclined(upstream) ? general.declined : byCode;
}

/**
 * The language that an `Accept-Language` prefers (RFC 9110, section 12.5.4). A range also stands
 * for its regions: `uk` is meant by `uk-UA` too.
 */
function localeOf(acceptLanguage: string): Locale {
  const ranges = acceptLanguage.toLowerCase().split(",").slice(0, maxRanges).map(rangeOf);
  const isNamed = (locale: Locale) => ranges.some(({ language }) => language === locale);
  const preferred = ranges.filter(({ quality }) => quality > 0);
  for (const { language } of preferred.toSorted((a, b) => b.quality - a.quality)) {
    const found = locales.find((locale) =>
      language === "*" ? !isNamed(locale) : language === locale,
    );
    if (found) return found;
  }
  return locales[0];
}

/** Browsers send a few; more would only cost time. */
const maxRanges = 20;

function rangeOf(text: string) {
  const [range = "", ...parameters] = text.split(";").map((part) => part.trim());
  const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  return { language: range.split("-")[0], quality: quality === undefined ? 1 : Number(quality) };
}

/** For errors whose code has no text of its own. */
const textsByErrorCode: Readonly<Record<GatewayError["code"], keyof typeof en.general>> = {
  CANCELLED: "soon",
  UNKNOWN: "checking",
  INVALID_ARGUMENT: "notLikeThis",
  DEADLINE_EXCEEDED: "soon",
  NOT_FOUND: "ourFault",
  ALREADY_EXISTS: "done",
  PERMISSION_DENIED: "ourFault",
  RESOURCE_EXHAUSTED: "soon",
  FAILED_PRECONDITION: "notLikeThis",
  ABORTED: "checking",
  OUT_OF_RANGE: "ourFault",
  UNIMPLEMENTED: "ourFault",
  INTERNAL: "ourFault",
  UNAVAILABLE: "soon",
  UNAUTHENTICATED: "signIn",
};

const en = {
  general: {
    checking: "We are checking your payment. Please do not pay again.",
    declined: "The payment was declined. Please use another card or ask your bank.",
    done: "This is done already.",
    notLikeThis: "The payment is not possible like this.",
    ourFault: "Something is wrong on our side. Please try again later or contact us.",
    signIn: "Please sign in again.",
    soon: "Please try again in a moment.",
  },
  /** For codes of the payments service about which a customer can be told more. */
  ofCodes: {
    insufficient_funds: otherCardEn("There is not enough money on the card."),
    card_expired: otherCardEn("The card has expired."),
    wrong_cvv: "The security code is wrong. Please check it and try again.",
    cvv_is_required: "Please enter the card's security code.",
    wrong_card_number: "The card number is wrong. Please check it and try again.",
    wrong_account_number: "The account number is wrong. Please check it and try again.",
    invalid_card_data: "Please check the card's details and try again.",
    invalid_phone_number: "Please check the phone number and try again.",
    invalid_recipient_name: "Please check the recipient's name and try again.",
    wrong_pin: "The PIN is wrong. Please try again.",
    wrong_sms_password: "The code is wrong. Please try again.",
    failed_to_send_sms: "We could not send you a code. Please try again later.",
    "3ds_not_supported": otherCardEn("The card does not support the confirmation that is needed."),
    wrong_cavv: "Your bank did not confirm the payment. Please try again or use another card.",
    failed_to_verify_card: otherCardEn("Your bank did not confirm the card."),
    confirmation_timeout: "The confirmation took too long. Please try again.",
    session_expired: "The payment page has expired. Please try again.",
    banking_application_is_not_installed: "Please install your bank's app, or pay by card.",
    transaction_amount_limit: otherCardEn("The amount is above the card's limit."),
    transaction_limit_exceeded: otherCardEn("The card's limit is reached."),
    daily_card_usage_limit_reached: otherCardEn("The card's daily limit is reached."),
    card_not_supported: otherCardEn("This kind of card is not accepted."),
    country_not_supported: otherCardEn("Cards of this country are not accepted."),
    bank_is_not_supported: otherCardEn("Cards of this bank are not accepted."),
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
  } satisfies Partial<Record<ListedCode, string>>,
};

const uk: typeof en = {
  general: {
    checking: "Ми перевіряємо ваш платіж. Будь ласка, не платіть ще раз.",
    declined: "Платіж відхилено. Скористайтеся іншою карткою або зверніться до свого банку.",
    done: "Це вже зроблено.",
    notLikeThis: "Провести такий платіж неможливо.",
    ourFault: "У нас сталася помилка. Спробуйте пізніше або зверніться до нас.",
    signIn: "Будь ласка, увійдіть ще раз.",
    soon: "Будь ласка, спробуйте ще раз трохи згодом.",
  },
  ofCodes: {
    insufficient_funds: otherCardUk("На картці недостатньо коштів."),
    card_expired: otherCardUk("Термін дії картки минув."),
    wrong_cvv: "Неправильний код безпеки картки. Перевірте його та спробуйте ще раз.",
    cvv_is_required: "Введіть код безпеки картки.",
    wrong_card_number: "Неправильний номер картки. Перевірте його та спробуйте ще раз.",
    wrong_account_number: "Неправильний номер рахунку. Перевірте його та спробуйте ще раз.",
    invalid_card_data: "Перевірте дані картки та спробуйте ще раз.",
    invalid_phone_number: "Перевірте номер телефону та спробуйте ще раз.",
    invalid_recipient_name: "Перевірте ім’я отримувача та спробуйте ще раз.",
    wrong_pin: "Неправильний PIN-код. Спробуйте ще раз.",
    wrong_sms_password: "Неправильний код. Спробуйте ще раз.",
    failed_to_send_sms: "Нам не вдалося надіслати вам код. Спробуйте пізніше.",
    "3ds_not_supported": otherCardUk("Картка не підтримує потрібного підтвердження."),
    wrong_cavv: "Ваш банк не підтвердив платіж. Спробуйте ще раз або скористайтеся іншою карткою.",
    failed_to_verify_card: otherCardUk("Ваш банк не підтвердив картку."),
    confirmation_timeout: "Час на підтвердження вичерпано. Спробуйте ще раз.",
    session_expired: "Сторінка оплати більше не діє. Спробуйте ще раз.",
    banking_application_is_not_installed: "Установіть застосунок свого банку або сплатіть карткою.",
    transaction_amount_limit: otherCardUk("Сума перевищує ліміт картки."),
    transaction_limit_exceeded: otherCardUk("Ліміт картки вичерпано."),
    daily_card_usage_limit_reached: otherCardUk("Денний ліміт картки вичерпано."),
    card_not_supported: otherCardUk("Картки цього типу не приймаються."),
    country_not_supported: otherCardUk("Картки цієї країни не приймаються."),
    bank_is_not_supported: otherCardUk("Картки цього банку не приймаються."),
    transaction_is_canceled_by_payer: "Ви скасували платіж. Можете спробувати ще раз.",
    "3ds_required": "Ваш банк просить підтвердити платіж. Спробуйте ще раз і підтвердьте його.",
    invalid_token: "Платіж відхилено. Введіть дані картки ще раз або скористайтеся іншою.",
    failed_to_load_wallet: "Збережені картки зараз недоступні. Введіть дані картки.",
    insufficient_funds_for_refund: "Повернути кошти зараз неможливо. Зверніться до нас.",
    subscription_successful: "Ми перевіряємо вашу підписку. Будь ласка, не оформлюйте її ще раз.",
    unsubscribed_successfully: "Вашу підписку скасовано.",
    transaction_already_paid: "Це замовлення вже оплачено.",
    order_expired: "Термін дії замовлення минув.",
    order_canceled: "Замовлення скасовано.",
    payment_was_refunded: "Кошти за цей платіж уже повернено.",
    payment_method_already_confirmed: "Картку вже підтверджено.",
    subscription_already_exists: "У вас уже є ця підписка.",
    subscription_not_active: "Підписка неактивна.",
    subscription_auto_renew_locked: "Поновлення цієї підписки не можна змінити.",
    card_not_found: "Цієї картки вже немає серед збережених. Введіть її дані ще раз.",
  },
};

const languages: Readonly<Record<Locale, typeof en>> = { en, uk };

/** Codes whose text is that of another one. */
const sameText: ReadonlyMap<string, keyof typeof en.ofCodes> = new Map([
  ["wrong_authorization_code", "wrong_sms_password"],
  ["invalid_verification_code", "wrong_sms_password"],
  ["card_branch_daily_limit_reached", "daily_card_usage_limit_reached"],
  ["card_type_is_not_supported", "card_not_supported"],
  ["payment_system_not_supported", "card_not_supported"],
] satisfies [ListedCode, keyof typeof en.ofCodes][]);

function otherCardEn(text: string): string {
  return `${text} Please use another card.`;
}

function otherCardUk(text: string): string {
  return `${text} Скористайтеся іншою карткою.`;
}
