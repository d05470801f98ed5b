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
  return { locale, message: textsOf(error)[locale] };
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

type Texts = Readonly<Record<Locale, string>>;

/** The text about an error in every language. */
export function textsOf({ code, details: { upstream, outcomeUnknown } }: ToldError): Texts {
  if (outcomeUnknown) return checking;
  // The key of the call was used before: an earlier call may have moved the money.
  if (!upstream) return code === "ALREADY_EXISTS" ? checking : byErrorCode[code];
  // What is wrong is the customer's own token, whatever the code says of a card.
  if (code === "UNAUTHENTICATED") return byErrorCode[code];
  const { code: serviceCode = "" } = upstream;
  if (hasText(serviceCode)) return byListedCode[serviceCode];
  if (readingOf(serviceCode)?.retry === "lookUp") return checking;
  return code === "FAILED_PRECONDITION" && saysDeclined(upstream) ? declined : byErrorCode[code];
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

const checking: Texts = {
  en: "We are checking your payment. Please do not pay again.",
  uk: "Ми перевіряємо ваш платіж. Будь ласка, не платіть ще раз.",
};
const declined: Texts = {
  en: "The payment was declined. Please use another card or ask your bank.",
  uk: "Платіж відхилено. Скористайтеся іншою карткою або зверніться до свого банку.",
};
const done: Texts = { en: "This is done already.", uk: "Це вже зроблено." };
const notLikeThis: Texts = {
  en: "The payment is not possible like this.",
  uk: "Провести такий платіж неможливо.",
};
const ourFault: Texts = {
  en: "Something is wrong on our side. Please try again later or contact us.",
  uk: "У нас сталася помилка. Спробуйте пізніше або зверніться до нас.",
};
const signIn: Texts = { en: "Please sign in again.", uk: "Будь ласка, увійдіть ще раз." };
const soon: Texts = {
  en: "Please try again in a moment.",
  uk: "Будь ласка, спробуйте ще раз трохи згодом.",
};

/** For errors whose code has no text of its own. */
const byErrorCode: Readonly<Record<GatewayError["code"], Texts>> = {
  CANCELLED: soon,
  UNKNOWN: checking,
  INVALID_ARGUMENT: notLikeThis,
  DEADLINE_EXCEEDED: soon,
  NOT_FOUND: ourFault,
  ALREADY_EXISTS: done,
  PERMISSION_DENIED: ourFault,
  RESOURCE_EXHAUSTED: soon,
  FAILED_PRECONDITION: notLikeThis,
  ABORTED: checking,
  OUT_OF_RANGE: ourFault,
  UNIMPLEMENTED: ourFault,
  INTERNAL: ourFault,
  UNAVAILABLE: soon,
  UNAUTHENTICATED: signIn,
};

/** A text that ends with the advice to use another card. */
function otherCard({ en, uk }: Texts): Texts {
  return { en: `${en} Please use another card.`, uk: `${uk} Скористайтеся іншою карткою.` };
}

const wrongCode: Texts = {
  en: "The code is wrong. Please try again.",
  uk: "Неправильний код. Спробуйте ще раз.",
};
const dailyLimit = otherCard({
  en: "The card's daily limit is reached.",
  uk: "Денний ліміт картки вичерпано.",
});
const kindOfCard = otherCard({
  en: "This kind of card is not accepted.",
  uk: "Картки цього типу не приймаються.",
});

function hasText(code: string): code is keyof typeof byListedCode {
  return Object.hasOwn(byListedCode, code);
}

/** For codes of the payments service about which a customer can be told more. */
const byListedCode = {
  insufficient_funds: otherCard({
    en: "There is not enough money on the card.",
    uk: "На картці недостатньо коштів.",
  }),
  card_expired: otherCard({ en: "The card has expired.", uk: "Термін дії картки минув." }),
  wrong_cvv: {
    en: "The security code is wrong. Please check it and try again.",
    uk: "Неправильний код безпеки картки. Перевірте його та спробуйте ще раз.",
  },
  cvv_is_required: {
    en: "Please enter the card's security code.",
    uk: "Введіть код безпеки картки.",
  },
  wrong_card_number: {
    en: "The card number is wrong. Please check it and try again.",
    uk: "Неправильний номер картки. Перевірте його та спробуйте ще раз.",
  },
  wrong_account_number: {
    en: "The account number is wrong. Please check it and try again.",
    uk: "Неправильний номер рахунку. Перевірте його та спробуйте ще раз.",
  },
  invalid_card_data: {
    en: "Please check the card's details and try again.",
    uk: "Перевірте дані картки та спробуйте ще раз.",
  },
  invalid_phone_number: {
    en: "Please check the phone number and try again.",
    uk: "Перевірте номер телефону та спробуйте ще раз.",
  },
  invalid_recipient_name: {
    en: "Please check the recipient's name and try again.",
    uk: "Перевірте ім’я отримувача та спробуйте ще раз.",
  },
  wrong_pin: {
    en: "The PIN is wrong. Please try again.",
    uk: "Неправильний PIN-код. Спробуйте ще раз.",
  },
  wrong_sms_password: wrongCode,
  wrong_authorization_code: wrongCode,
  invalid_verification_code: wrongCode,
  failed_to_send_sms: {
    en: "We could not send you a code. Please try again later.",
    uk: "Нам не вдалося надіслати вам код. Спробуйте пізніше.",
  },
  "3ds_not_supported": otherCard({
    en: "The card does not support the confirmation that is needed.",
    uk: "Картка не підтримує потрібного підтвердження.",
  }),
  wrong_cavv: {
    en: "Your bank did not confirm the payment. Please try again or use another card.",
    uk: "Ваш банк не підтвердив платіж. Спробуйте ще раз або скористайтеся іншою карткою.",
  },
  failed_to_verify_card: otherCard({
    en: "Your bank did not confirm the card.",
    uk: "Ваш банк не підтвердив картку.",
  }),
  confirmation_timeout: {
    en: "The confirmation took too long. Please try again.",
    uk: "Час на підтвердження вичерпано. Спробуйте ще раз.",
  },
  session_expired: {
    en: "The payment page has expired. Please try again.",
    uk: "Сторінка оплати більше не діє. Спробуйте ще раз.",
  },
  banking_application_is_not_installed: {
    en: "Please install your bank's app, or pay by card.",
    uk: "Установіть застосунок свого банку або сплатіть карткою.",
  },
  transaction_amount_limit: otherCard({
    en: "The amount is above the card's limit.",
    uk: "Сума перевищує ліміт картки.",
  }),
  transaction_limit_exceeded: otherCard({
    en: "The card's limit is reached.",
    uk: "Ліміт картки вичерпано.",
  }),
  daily_card_usage_limit_reached: dailyLimit,
  card_branch_daily_limit_reached: dailyLimit,
  card_not_supported: kindOfCard,
  card_type_is_not_supported: kindOfCard,
  payment_system_not_supported: kindOfCard,
  country_not_supported: otherCard({
    en: "Cards of this country are not accepted.",
    uk: "Картки цієї країни не приймаються.",
  }),
  bank_is_not_supported: otherCard({
    en: "Cards of this bank are not accepted.",
    uk: "Картки цього банку не приймаються.",
  }),
  transaction_is_canceled_by_payer: {
    en: "You cancelled the payment. You can try again.",
    uk: "Ви скасували платіж. Можете спробувати ще раз.",
  },
  "3ds_required": {
    en: "Your bank asks you to confirm the payment. Please try again and confirm it.",
    uk: "Ваш банк просить підтвердити платіж. Спробуйте ще раз і підтвердьте його.",
  },
  invalid_token: {
    en: "The payment was declined. Please enter the card again or use another one.",
    uk: "Платіж відхилено. Введіть дані картки ще раз або скористайтеся іншою.",
  },
  failed_to_load_wallet: {
    en: "Your saved cards cannot be used right now. Please enter the card.",
    uk: "Збережені картки зараз недоступні. Введіть дані картки.",
  },
  insufficient_funds_for_refund: {
    en: "The refund is not possible right now. Please contact us.",
    uk: "Повернути кошти зараз неможливо. Зверніться до нас.",
  },
  subscription_successful: {
    en: "We are checking your subscription. Please do not subscribe again.",
    uk: "Ми перевіряємо вашу підписку. Будь ласка, не оформлюйте її ще раз.",
  },
  unsubscribed_successfully: {
    en: "Your subscription has ended.",
    uk: "Вашу підписку скасовано.",
  },
  transaction_already_paid: {
    en: "This order is paid already.",
    uk: "Це замовлення вже оплачено.",
  },
  order_expired: { en: "The order has expired.", uk: "Термін дії замовлення минув." },
  order_canceled: { en: "The order was cancelled.", uk: "Замовлення скасовано." },
  payment_was_refunded: {
    en: "The payment was refunded already.",
    uk: "Кошти за цей платіж уже повернено.",
  },
  payment_method_already_confirmed: {
    en: "The card is confirmed already.",
    uk: "Картку вже підтверджено.",
  },
  subscription_already_exists: {
    en: "You have this subscription already.",
    uk: "У вас уже є ця підписка.",
  },
  subscription_not_active: {
    en: "The subscription is not active.",
    uk: "Підписка неактивна.",
  },
  subscription_auto_renew_locked: {
    en: "The renewal of this subscription cannot be changed.",
    uk: "Поновлення цієї підписки не можна змінити.",
  },
  card_not_found: {
    en: "This card is no longer saved. Please enter it again.",
    uk: "Цієї картки вже немає серед збережених. Введіть її дані ще раз.",
  },
} as const satisfies Partial<Record<ListedCode, Texts>>;
