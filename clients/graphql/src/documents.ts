/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';
/** What became of a call that moves money, where that is not told by an answer. */
export type CallOutcome =
  /** It could not be found out in time: an operator has to look at the payments service. */
  | 'NEEDS_OPERATOR'
  /** The payments service, asked several times, does not know of it: nothing moved. */
  | 'NOT_DONE'
  /** It is known by now: the payment's or payout's own events tell. */
  | 'SETTLED'
  /** The call was sent and no answer was understood: the money may have moved. Do not repeat the call. The gateway looks it up, and a further event tells. */
  | 'UNKNOWN';

/** The card that is paid to: by its number or by a token. That both are refused is the gateway's own rule: the service does not say which of them it would pay to. */
export type CardDataInput = {
  /** Full card number, 8 to 19 digits (ISO/IEC 7812) without separators: the gateway's own check. */
  number?: string | null | undefined;
  /** The card's id in the wallet. */
  optionId?: string | null | undefined;
  /** Card token received from a payment operation, at most 4,096 bytes. */
  token?: string | null | undefined;
};

/** A card by its number. Never logged, never stored. */
export type CardInput = {
  /** Security code, 3 or 4 digits: the gateway's own check. */
  cvv: string;
  /** Month of expiry, 1 to 12. */
  expMonth: number;
  /** Year of expiry, at most four digits: the gateway's own check. */
  expYear: number;
  /** Card number, 8 to 19 digits (ISO/IEC 7812) without separators: the gateway's own check. */
  number: string;
  /** Whether to use the 3DS flow. */
  use3dsFlow?: boolean | null | undefined;
};

/** The person who is paid to a card. */
export type CardRecipientInput = {
  /** The card. */
  cardData?: CardDataInput | null | undefined;
  /** E-mail address, checked by the gateway as HTML's input of that type is: ASCII alone. */
  email?: string | null | undefined;
  /** The person's id in the merchant platform. */
  externalId?: string | number | null | undefined;
  /** First name. */
  firstName: string;
  /** Tax number. */
  ipn?: string | null | undefined;
  /** Last name. */
  lastName: string;
  /** Middle name. */
  middleName?: string | null | undefined;
  /** Phone number in international format. */
  phone?: string | null | undefined;
  /** RID (uuid). */
  rid?: string | null | undefined;
};

/** The person who is paid in cash. */
export type CashRecipientInput = {
  /** E-mail address, checked by the gateway as HTML's input of that type is: ASCII alone. */
  email?: string | null | undefined;
  /** The person's id in the merchant platform. */
  externalId?: string | number | null | undefined;
  /** First name. */
  firstName: string;
  /** Tax number. */
  ipn?: string | null | undefined;
  /** Last name. */
  lastName: string;
  /** Middle name. */
  middleName?: string | null | undefined;
  /** Phone number in international format. */
  phone?: string | null | undefined;
  /** RID (uuid). */
  rid?: string | null | undefined;
};

/** A payment to confirm. The payments service does not publish the shape of this call: these are the fields that its other calls share. */
export type ConfirmPaymentInput = {
  /** How much of it, a decimal. Default: all. */
  amount?: string | null | undefined;
  /** Currency code. */
  currency?: string | null | undefined;
  /** The payment's externalId. */
  externalId: string | number;
  /** Makes a repeat safe for 24 hours: the same key with the same input gets the first answer again, with `idempotentReplayed: true` in the `extensions` of the result. 1 to 255 visible ASCII characters. Over HTTP the header `Idempotency-Key` does the same; over WebSocket, and behind a router, only this does. If both are given, they must be the same key. */
  idempotencyKey?: string | null | undefined;
  /** The merchant's own text, returned as it is; at most 16,384 bytes. */
  payload?: string | null | undefined;
  /** When to answer. With an Idempotency-Key, repeats may ask for another one: they are told today's state. */
  waitUntil?: WaitUntil | null | undefined;
};

/** A payment to make. */
export type CreatePaymentInput = {
  /** Account number. Also in `customer`. */
  accountNumber?: string | null | undefined;
  /** How much, a decimal. */
  amount: string;
  /** Theme of the checkout page: `white` or `dark`. Also in `customer`. */
  colorMode?: string | null | undefined;
  /** Whether funds are transferred at once. Default true; when false, `confirmPayment` transfers them. */
  confirm?: boolean | null | undefined;
  /** Currency code. */
  currency: string;
  /** Who pays. Required in mode DIRECT. */
  customer?: PaymentCustomerInput | null | undefined;
  /** Description of the payment, at most 4,096 bytes. */
  description?: string | null | undefined;
  /** The merchant's own id (an order number, say). May be used again until a success. */
  externalId: string | number;
  /** The customer's browser. */
  fingerprint?: FingerprintInput | null | undefined;
  /** Makes a repeat safe for 24 hours: the same key with the same input gets the first answer again, with `idempotentReplayed: true` in the `extensions` of the result. 1 to 255 visible ASCII characters. Over HTTP the header `Idempotency-Key` does the same; over WebSocket, and behind a router, only this does. If both are given, they must be the same key. */
  idempotencyKey?: string | null | undefined;
  /** Whether to prepare for `createRecurrentPayment`: the answer then has a recurrentId. */
  initRecurrentPayment?: boolean | null | undefined;
  /** The customer's IPv4 address. Also in `customer`. */
  ipAddress?: string | null | undefined;
  /** Language of the checkout page: `UK`, `EN`, `ES`, `PL`, `FR`, `SK` or `DE`. Also in `customer`. */
  locale?: string | null | undefined;
  /** How the payment details are collected. */
  mode: PaymentMode;
  /** The merchant's own text, returned as it is; at most 16,384 bytes. */
  payload?: string | null | undefined;
  /** What to pay with. */
  paymentMethod: PaymentMethodInput;
  /** What is bought. Required in mode EXPRESS_CHECKOUT. */
  products?: Array<ProductInput> | null | undefined;
  /** Who receives the money. */
  recipient?: PaymentRecipientInput | null | undefined;
  /** Where the customer's browser goes in the end, after 3DS too: a page, or a link into an app (`myshop://done`). Default: what the project's settings say. */
  resultUrl?: string | null | undefined;
  /** The billing subscription that the payment belongs to. */
  subscriptionId?: string | null | undefined;
  /** A second id of the merchant's. The service's interface gives no meaning. */
  unifiedExternalId?: string | null | undefined;
  /** When to answer. With an Idempotency-Key, repeats may ask for another one: they are told today's state. */
  waitUntil?: WaitUntil | null | undefined;
};

/** A payment to make from an earlier one. */
export type CreateRecurrentPaymentInput = {
  /** How much, a decimal. */
  amount: string;
  /** Whether funds are transferred at once. Default true. */
  confirm?: boolean | null | undefined;
  /** API key (uuid) of another merchant: the payment is processed in favor of the key's owner, with the payment data of the initial payment. */
  delegateApiKey?: string | null | undefined;
  /** The merchant's own id of this payment. */
  externalId: string | number;
  /** Makes a repeat safe for 24 hours: the same key with the same input gets the first answer again, with `idempotentReplayed: true` in the `extensions` of the result. 1 to 255 visible ASCII characters. Over HTTP the header `Idempotency-Key` does the same; over WebSocket, and behind a router, only this does. If both are given, they must be the same key. */
  idempotencyKey?: string | null | undefined;
  /** The merchant's own text, returned as it is; at most 16,384 bytes. */
  payload?: string | null | undefined;
  /** From the details of the earlier payment. */
  recurrentId: string;
  /** The billing subscription that the payment belongs to. */
  subscriptionId?: string | null | undefined;
  /** A second id of the merchant's. The service's interface gives no meaning. */
  unifiedExternalId?: string | null | undefined;
  /** When to answer. With an Idempotency-Key, repeats may ask for another one: they are told today's state. */
  waitUntil?: WaitUntil | null | undefined;
};

/** What the token allows to watch. */
export type CreateWatchTokenInput = {
  /** externalId of the payment or payout. It need not exist yet. */
  externalId: string | number;
  /** Whether it is a payment or a payout. */
  kind: EventKind;
  /** How long the token is good for, in whole seconds, 1 to 86400. Default 900. */
  ttlSeconds?: number | null | undefined;
};

/** Which customer a wallet or subscription call is for: at least one of these, also in subscription calls, unless the caller's token says it. A token with authorization_flow=processing may go together with the externalId of the customer that the call is about. */
export type CustomerInput = {
  /** A customer access token (JWT), of at most 8,192 bytes. For actions that no user started, a token issued with authorization_flow=processing. A call that takes it has no GET: the URL of a request is in the logs of proxies. */
  authToken?: string | null | undefined;
  /** The customer's id in the merchant platform. */
  externalId?: string | number | null | undefined;
};

/** A subscription to deactivate. */
export type DeactivateSubscriptionInput = {
  /** Whose it is. For actions that no user started, a token issued with authorization_flow=processing. */
  customer?: CustomerInput | null | undefined;
  /** Which subscription (uuid). */
  subscriptionId: string;
};

/** An Apple Pay payment token that the merchant decrypted. */
export type DecryptedApplePayInput = {
  /** Its expiry. */
  applicationExpirationDate: string;
  /** Device account number. */
  applicationPrimaryAccountNumber: string;
  /** Currency code. */
  currencyCode?: string | null | undefined;
  /** Maker of the device. */
  deviceManufacturerIdentifier?: string | null | undefined;
  /** Electronic commerce indicator. */
  eciIndicator?: string | null | undefined;
  /** Ephemeral public key, at most 1,024 bytes. */
  ephemeralPublicKey?: string | null | undefined;
  /** Cryptogram of this payment, at most 1,024 bytes. */
  onlinePaymentCryptogram: string;
  /** Hash of the merchant's public key, at most 1,024 bytes. */
  publicKeyHash?: string | null | undefined;
  /** Apple's transaction id. */
  transactionId?: string | null | undefined;
  /** Whether to use the 3DS flow. */
  use3dsFlow?: boolean | null | undefined;
};

/** A Google Pay payment token that the merchant decrypted. */
export type DecryptedGooglePayInput = {
  /** How the card was authenticated. */
  authMethod?: string | null | undefined;
  /** Cryptogram of this payment, at most 1,024 bytes. */
  cryptogram: string;
  /** Electronic commerce indicator. */
  eciIndicator?: string | null | undefined;
  /** Month of expiry, 1 to 12. */
  expMonth: number;
  /** Year of expiry, at most four digits: the gateway's own check. */
  expYear: number;
  /** Google's id of the merchant at the gateway. */
  gatewayMerchantId?: string | null | undefined;
  /** When the message expires, as Google gave it. */
  messageExpiration?: string | null | undefined;
  /** Google's message id. */
  messageId?: string | null | undefined;
  /** Card or device account number. */
  pan: string;
  /** Kind of the payment method, as Google gave it. */
  paymentMethod?: string | null | undefined;
  /** Version of the protocol. */
  protocolVersion?: string | null | undefined;
  /** Whether to use the 3DS flow. */
  use3dsFlow?: boolean | null | undefined;
};

/** Which payment method to remove. */
export type DeleteWalletItemInput = {
  /** The customer, by token or external id. */
  customer?: CustomerInput | null | undefined;
  /** Id of the card in the wallet (uuid). */
  optionId: string;
  /** Kind of the item, as `walletItems` gave it. */
  type: string;
};

/** What kind of problem the payments service reports. */
export type ErrorType =
  /** The service itself failed, or its rate limit was reached. */
  | 'API_ERROR'
  /** The customer or its access token is unknown, expired or not allowed. */
  | 'CUSTOMER_ERROR'
  /** The request is malformed or a parameter is wrong. */
  | 'INVALID_REQUEST_ERROR'
  /** The payment itself failed or is not possible. */
  | 'PAYMENT_ERROR'
  /** The payment method is wrong, expired, or cannot be used. */
  | 'PAYMENT_METHOD_ERROR'
  /** The merchant's project is not set up for this call. */
  | 'PAYMENT_SETTINGS_ERROR';

/** What an event is about. */
export type EventKind =
  /** A payment. */
  | 'PAYMENT'
  /** A payout. */
  | 'PAYOUT';

/** How the gateway learned of it. */
export type EventSource =
  /** From a callback of the payments service. */
  | 'CALLBACK'
  /** The gateway looked it up, because its outcome was unknown or its callback did not come. */
  | 'RECONCILIATION'
  /** From the answer to a call that changed the payment or payout. */
  | 'RESPONSE';

/** Data of the customer's browser, for 3DS. All of it is required where any is given; a value may be empty. */
export type FingerprintInput = {
  /** Accept header, at most 2,048 bytes. */
  browserAcceptHeader: string;
  /** Colour depth, in bits. */
  browserColorDepth: string;
  /** IP address. */
  browserIpAddress: string;
  /** Whether Java is enabled. */
  browserJavaEnabled: string;
  /** Language. */
  browserLanguage: string;
  /** Height of the screen, in pixels. */
  browserScreenHeight: string;
  /** Width of the screen, in pixels. */
  browserScreenWidth: string;
  /** Name of the time zone. */
  browserTimeZone: string;
  /** Offset of the time zone from UTC, in minutes. */
  browserTimeZoneOffset: string;
  /** User agent, at most 2,048 bytes. */
  browserUserAgent: string;
};

/** A bank account. */
export type IbanInput = {
  /** The IBAN. */
  iban: string;
};

/** Who pays. */
export type PayerInput = {
  /** Id of the paying entity. */
  entityId: string;
};

/** Who pays. */
export type PaymentCustomerInput = {
  /** Account number. */
  accountNumber?: string | null | undefined;
  /** Street address, at most 50 characters. */
  address?: string | null | undefined;
  /** City. */
  city?: string | null | undefined;
  /** Theme of the checkout page in mode HOSTED: `white` or `dark`. */
  colorMode?: string | null | undefined;
  /** Country. */
  country?: string | null | undefined;
  /** E-mail address, checked by the gateway as HTML's input of that type is: ASCII alone. */
  email?: string | null | undefined;
  /** The customer's id in the merchant platform. */
  externalId?: string | number | null | undefined;
  /** First name. */
  firstName?: string | null | undefined;
  /** IPv4 address. */
  ipAddress?: string | null | undefined;
  /** Last name. */
  lastName?: string | null | undefined;
  /** Language of the checkout page in mode HOSTED: `UK`, `EN`, `ES`, `PL`, `FR`, `SK` or `DE`. */
  locale?: string | null | undefined;
  /** Patronym. */
  patronym?: string | null | undefined;
  /** Phone number. */
  phone?: string | null | undefined;
  /** Postal code. */
  postalCode?: string | null | undefined;
};

/** The details of the payment method. */
export type PaymentMethodDetailsInput =
  {   /** Apple Pay, as the device gave it. */
  applePay: TokenInput; cc?: never; ccToken?: never; decryptedApplePay?: never; decryptedGooglePay?: never; googlePay?: never; wallet?: never; }
  |  { applePay?: never;   /** A card by its number. */
  cc: CardInput; ccToken?: never; decryptedApplePay?: never; decryptedGooglePay?: never; googlePay?: never; wallet?: never; }
  |  { applePay?: never; cc?: never;   /** A card by the token of an earlier payment. */
  ccToken: TokenInput; decryptedApplePay?: never; decryptedGooglePay?: never; googlePay?: never; wallet?: never; }
  |  { applePay?: never; cc?: never; ccToken?: never;   /** Apple Pay, decrypted by the merchant. */
  decryptedApplePay: DecryptedApplePayInput; decryptedGooglePay?: never; googlePay?: never; wallet?: never; }
  |  { applePay?: never; cc?: never; ccToken?: never; decryptedApplePay?: never;   /** Google Pay, decrypted by the merchant. */
  decryptedGooglePay: DecryptedGooglePayInput; googlePay?: never; wallet?: never; }
  |  { applePay?: never; cc?: never; ccToken?: never; decryptedApplePay?: never; decryptedGooglePay?: never;   /** Google Pay, as the device gave it. */
  googlePay: TokenInput; wallet?: never; }
  |  { applePay?: never; cc?: never; ccToken?: never; decryptedApplePay?: never; decryptedGooglePay?: never; googlePay?: never;   /** A card in the customer's wallet. */
  wallet: WalletOptionInput; };

/**
 * What to pay with: a type, and the object that goes with it.
 *
 * The type may be left out where the object tells it: `cc` is CC_NUMBER, `decryptedApplePay` is APPLE_PAY, `decryptedGooglePay` is GOOGLE_PAY, the others have their own name. CARD goes with `cc` and is always given. A type that disagrees with the object is refused. In the modes HOSTED and EXPRESS_CHECKOUT, where the customer enters the details on the page, the type alone is enough.
 */
export type PaymentMethodInput = {
  /** The details of the payment method. */
  method?: PaymentMethodDetailsInput | null | undefined;
  /** Whether to keep the card in the customer's wallet. */
  saveToWallet?: boolean | null | undefined;
  /** Kind of the payment method. */
  type?: PaymentMethodType | null | undefined;
};

/** How a payment is paid. */
export type PaymentMethodType =
  /** Apple Pay. */
  | 'APPLE_PAY'
  /** A card; on a hosted page, entered there. */
  | 'CARD'
  /** A card by its number. */
  | 'CC_NUMBER'
  /** A card token of an earlier payment. */
  | 'CC_TOKEN'
  /** Google Pay. */
  | 'GOOGLE_PAY'
  /** A card that the customer keeps in the wallet. */
  | 'WALLET';

/** How the customer's payment details are collected. */
export type PaymentMode =
  /** The request holds the payment details; the answer usually holds the URL of a second factor (3DS or other). Needs `customer` and the payment method's details. */
  | 'DIRECT'
  /** Like hosted, with the list of products. Needs `products`. */
  | 'EXPRESS_CHECKOUT'
  /** The answer holds the URL of a checkout page where the customer enters them. */
  | 'HOSTED';

/** What was done with a payment. */
export type PaymentOperation =
  /** Cancellation. The service's interface does not say of what; the gateway takes it for that of a payment. */
  | 'CANCEL'
  /** Confirmation of the funds transfer of a payment made with `confirm: false`. */
  | 'CONFIRM'
  /** A look-up of the state. */
  | 'LOOKUP'
  /** The payment itself. */
  | 'PAYMENT'
  /** A recurrent payment, made from an earlier one. */
  | 'RECURRENT'
  /** Money given back, whole or in part. */
  | 'REFUND';

/** Who receives the money of a payment. */
export type PaymentRecipientInput = {
  /** Street address, at most 50 characters. */
  address?: string | null | undefined;
  /** City. */
  city?: string | null | undefined;
  /** Country. */
  country?: string | null | undefined;
  /** E-mail address, checked by the gateway as HTML's input of that type is: ASCII alone. */
  email?: string | null | undefined;
  /** The recipient's id in the merchant platform. */
  externalId?: string | number | null | undefined;
  /** First name. */
  firstName?: string | null | undefined;
  /** Last name. */
  lastName?: string | null | undefined;
  /** Patronym. */
  patronym?: string | null | undefined;
  /** Where the money goes. */
  paymentMethod: RecipientPaymentMethodInput;
  /** Phone number. */
  phone?: string | null | undefined;
  /** Postal code. */
  postalCode?: string | null | undefined;
  /** The recipient's RID. */
  rid?: string | null | undefined;
  /** Tax number. */
  tin?: string | null | undefined;
};

/** Is it paid? What all operations of an externalId amount to, as far as the gateway knows. It is of the externalId as a whole, whatever a single event or attempt says: show this. */
export type PaymentState =
  /** Held: made with `confirm: false`, succeeded, not confirmed yet. A held payment that another client made cannot be told from a paid one. */
  | 'AUTHORIZED'
  /** A success was taken back by a `cancel`. */
  | 'CANCELLED'
  /** The latest attempt failed and none succeeded. Another may follow. */
  | 'FAILED'
  /** The money moved. */
  | 'PAID'
  /** Less than what was paid was refunded, or it cannot be told that it was all. */
  | 'PARTIALLY_REFUNDED'
  /** An attempt is under way; the customer may have an action. */
  | 'PENDING'
  /** All that was paid was refunded. */
  | 'REFUNDED'
  /** A call is out without an understood answer, and nothing else says that it is paid: do not repeat the call. The gateway finds out and tells. */
  | 'UNKNOWN';

/** State of a payment or of one operation on it. It moves from init over pending to success or failure and never back. */
export type PaymentStatus =
  /** Failed. Final for this attempt; another attempt may use the same externalId. */
  | 'FAILURE'
  /** Created, nothing happened yet. */
  | 'INIT'
  /** In progress: at the bank, or waiting for the customer (see `action`). */
  | 'PENDING'
  /** Completed successfully. Final. */
  | 'SUCCESS';

/** What to pay out. */
export type PayoutOrderInput = {
  /** Currency code. */
  currency: string;
  /** Description of the payout, at most 4,096 bytes. */
  description: string;
  /** The merchant's own id of the payout. */
  externalId: string | number;
  /** How much, a decimal. */
  originalAmount: string;
};

/** Who is paid: `card` or `cash`, as the payoutType says. */
export type PayoutRecipientInput = {
  /** Required when payoutType is `card`. */
  card?: CardRecipientInput | null | undefined;
  /** Required when payoutType is `cash`. */
  cash?: CashRecipientInput | null | undefined;
};

/** Is it paid out? As far as the gateway knows, of the externalId as a whole. */
export type PayoutState =
  /** It failed. */
  | 'FAILED'
  /** The money moved. */
  | 'PAID'
  /** Under way. */
  | 'PENDING'
  /** A RequestPayout is out without an understood answer: do not repeat it. The gateway finds out and tells. */
  | 'UNKNOWN';

/** One position of the purchase. */
export type ProductInput = {
  /** Category. */
  category?: string | null | undefined;
  /** Currency code. */
  currency?: string | null | undefined;
  /** Description, at most 4,096 bytes. */
  description?: string | null | undefined;
  /** The merchant's id of the product. */
  id?: string | null | undefined;
  /** URL of an image, at most 2,048 bytes. */
  image?: string | null | undefined;
  /** Name. */
  name?: string | null | undefined;
  /** Price without tax, a decimal. */
  netAmount?: string | null | undefined;
  /** How many, a decimal. */
  quantity?: string | null | undefined;
  /** Tax group, required for projects with fiscalization: 1 VAT 20%; 2 no VAT; 3 VAT 20% plus excise 5%; 4 VAT 7%; 5 VAT 0%; 6 no VAT plus excise 5%; 7 not an object of VAT; 8 VAT 20% plus pension fund 7.5%; 9 VAT 14%. */
  taxGroup?: number | null | undefined;
  /** URL of the product, at most 2,048 bytes. */
  url?: string | null | undefined;
  /** Tax, a decimal. */
  vatAmount?: string | null | undefined;
};

/** A recipient's card by its number. */
export type RecipientCardNumberInput = {
  /** Card number, 8 to 19 digits (ISO/IEC 7812) without separators: the gateway's own check. */
  number: string;
};

/** The account or card. */
export type RecipientPaymentMethodDetailsInput =
  {   /** A card by its number. */
  ccNumber: RecipientCardNumberInput; ccToken?: never; iban?: never; wallet?: never; }
  |  { ccNumber?: never;   /** A card by a token. */
  ccToken: RecipientTokenInput; iban?: never; wallet?: never; }
  |  { ccNumber?: never; ccToken?: never;   /** A bank account. */
  iban: IbanInput; wallet?: never; }
  |  { ccNumber?: never; ccToken?: never; iban?: never;   /** A card in the wallet. */
  wallet: RecipientWalletOptionInput; };

/** Where the money goes: the object tells the type, and a type that disagrees with it is refused. */
export type RecipientPaymentMethodInput = {
  /** The account or card. */
  method: RecipientPaymentMethodDetailsInput;
  /** Kind of the payment method. */
  type?: RecipientPaymentMethodType | null | undefined;
};

/** How the recipient of a payment is paid. */
export type RecipientPaymentMethodType =
  /** To a card, by its number. */
  | 'CC_NUMBER'
  /** To a card, by a token. */
  | 'CC_TOKEN'
  /** To a bank account. */
  | 'IBAN'
  /** To a card in the wallet. */
  | 'WALLET';

/** A recipient's card by a token. */
export type RecipientTokenInput = {
  /** The token, at most 4,096 bytes. */
  token: string;
};

/** A recipient's card in the wallet. */
export type RecipientWalletOptionInput = {
  /** Its id (uuid). */
  optionId: string;
};

/** A payout to make. */
export type RequestPayoutInput = {
  /** Makes a repeat safe for 24 hours: the same key with the same input gets the first answer again, with `idempotentReplayed: true` in the `extensions` of the result. 1 to 255 visible ASCII characters. Over HTTP the header `Idempotency-Key` does the same; over WebSocket, and behind a router, only this does. If both are given, they must be the same key. */
  idempotencyKey?: string | null | undefined;
  /** What to pay out. */
  order: PayoutOrderInput;
  /** Who pays. */
  payer: PayerInput;
  /** Kind of the payout: `card` or `cash`. The service may know further kinds. */
  payoutType: string;
  /** Who is paid. */
  recipient: PayoutRecipientInput;
  /** When to answer. A payout has no action: either value waits until it is settled. With an Idempotency-Key, repeats may ask for another one: they are told today's state. */
  waitUntil?: WaitUntil | null | undefined;
};

/** A token: of a card, or as Apple Pay or Google Pay gave it. */
export type TokenInput = {
  /** The token, at most 16,384 bytes. */
  token: string;
  /** Whether to use the 3DS flow. */
  use3dsFlow?: boolean | null | undefined;
};

/** A change of a subscription. */
export type UpdateSubscriptionInput = {
  /** Whether it renews automatically after its due date. */
  autoRenew?: boolean | null | undefined;
  /** Whose it is. For actions that no user started, a token issued with authorization_flow=processing. */
  customer?: CustomerInput | null | undefined;
  /** Which subscription (uuid). */
  subscriptionId: string;
};

/** How long a call that moves money waits before it answers. It waits on the gateway alone, and costs the rate budget nothing. A wait ends shortly before the caller's deadline (a tenth of what is left, at least 100 ms), or after 30 s without one; then, and when the gateway shuts down, the answer is OK and tells the state as it is. Only where the outcome of the call itself is still unknown does it end as without a wait, with OutcomeUnknown. */
export type WaitUntil =
  /** Until the customer has something to do (the payment has an action), or it is settled. */
  | 'ACTION'
  /** Until it is settled: the state is neither PENDING nor UNKNOWN, and no confirmation is under way. FAILED counts as settled, though another attempt may follow. */
  | 'SETTLED';

/** A card in the customer's wallet. */
export type WalletOptionInput = {
  /** Its id (uuid), as `walletItems` gives it. */
  optionId: string;
  /** Whether to use the 3DS flow. */
  use3dsFlow?: boolean | null | undefined;
};

type PaymentFailure_InvalidInputError_Fragment = { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> };

type PaymentFailure_OutcomeUnknownError_Fragment = { __typename: 'OutcomeUnknownError', message: string };

type PaymentFailure_PaymentServiceError_Fragment = { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string };

type PaymentFailure_RateLimitError_Fragment = { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string };

export type PaymentFailureFragment =
  | PaymentFailure_InvalidInputError_Fragment
  | PaymentFailure_OutcomeUnknownError_Fragment
  | PaymentFailure_PaymentServiceError_Fragment
  | PaymentFailure_RateLimitError_Fragment
;

type EventView_PaymentEvent_Fragment = { cursor: string, source: EventSource, final: boolean, callOutcome: CallOutcome | null, receivedAt: string };

type EventView_PayoutEvent_Fragment = { cursor: string, source: EventSource, final: boolean, callOutcome: CallOutcome | null, receivedAt: string };

export type EventViewFragment =
  | EventView_PaymentEvent_Fragment
  | EventView_PayoutEvent_Fragment
;

export type PaymentHistoryQueryVariables = Exact<{
  externalId: string | number;
  first?: number | null | undefined;
  after?: string | null | undefined;
  newestFirst?: boolean | null | undefined;
}>;


export type PaymentHistoryQuery = { payment: { externalId: string, eventsConnection: { edges: Array<{ cursor: string, node: { state: PaymentState | null, paymentId: string | null, cursor: string, source: EventSource, final: boolean, callOutcome: CallOutcome | null, receivedAt: string } }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } | null } | null };

export type PayoutHistoryQueryVariables = Exact<{
  externalId: string | number;
  first?: number | null | undefined;
  after?: string | null | undefined;
  newestFirst?: boolean | null | undefined;
}>;


export type PayoutHistoryQuery = { payout: { externalId: string, eventsConnection: { edges: Array<{ cursor: string, node: { state: PayoutState | null, transactionId: string | null, cursor: string, source: EventSource, final: boolean, callOutcome: CallOutcome | null, receivedAt: string } }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } | null } | null };

export type PaymentViewFragment = { externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null };

export type PaymentWithStateFragment = { state: PaymentState | null, cursor: string | null, externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null };

export type PaymentPageQueryVariables = Exact<{
  externalId: string | number;
}>;


export type PaymentPageQuery = { payment: { state: PaymentState | null, cursor: string | null, externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, eventsConnection: { edges: Array<{ node: { cursor: string, state: PaymentState | null, source: EventSource, final: boolean, receivedAt: string } }> } | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null } | null };

export type PayMutationVariables = Exact<{
  input: CreatePaymentInput;
}>;


export type PayMutation = { createPayment:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'Payment', state: PaymentState | null, cursor: string | null, externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
   | null };

export type ChargeAgainMutationVariables = Exact<{
  input: CreateRecurrentPaymentInput;
}>;


export type ChargeAgainMutation = { createRecurrentPayment:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'Payment', state: PaymentState | null, cursor: string | null, externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
   | null };

export type ConfirmMutationVariables = Exact<{
  input: ConfirmPaymentInput;
}>;


export type ConfirmMutation = { confirmPayment:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'Payment', state: PaymentState | null, cursor: string | null, externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
   | null };

export type PayoutViewFragment = { externalId: string, state: PayoutState | null, cursor: string | null, transactionId: string | null, status: string | null, statusCode: string | null, statusCodeDescription: string | null, originalAmount: string | null, currency: string | null };

export type PayoutPageQueryVariables = Exact<{
  externalId: string | number;
}>;


export type PayoutPageQuery = { payout: { outcomeUnknown: boolean, externalId: string, state: PayoutState | null, cursor: string | null, transactionId: string | null, status: string | null, statusCode: string | null, statusCodeDescription: string | null, originalAmount: string | null, currency: string | null } | null };

export type PayOutMutationVariables = Exact<{
  input: RequestPayoutInput;
}>;


export type PayOutMutation = { requestPayout:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'Payout', externalId: string, state: PayoutState | null, cursor: string | null, transactionId: string | null, status: string | null, statusCode: string | null, statusCodeDescription: string | null, originalAmount: string | null, currency: string | null }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
   | null };

export type ChangeSubscriptionMutationVariables = Exact<{
  input: UpdateSubscriptionInput;
}>;


export type ChangeSubscriptionMutation = { updateSubscription:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
    | { __typename: 'SubscriptionMessage', message: string }
   | null };

export type EndSubscriptionMutationVariables = Exact<{
  input: DeactivateSubscriptionInput;
}>;


export type EndSubscriptionMutation = { deactivateSubscription:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
    | { __typename: 'SubscriptionMessage', message: string }
   | null };

export type WalletItemViewFragment = { optionId: string | null, name: string | null, type: string | null, isConfirmed: boolean | null, isDefault: boolean | null, card: { mask: string | null } | null };

export type WalletQueryVariables = Exact<{
  customer?: CustomerInput | null | undefined;
}>;


export type WalletQuery = { walletItems: Array<{ optionId: string | null, name: string | null, type: string | null, isConfirmed: boolean | null, isDefault: boolean | null, card: { mask: string | null } | null }> };

export type ForgetCardMutationVariables = Exact<{
  input: DeleteWalletItemInput;
}>;


export type ForgetCardMutation = { deleteWalletItem:
    | { __typename: 'DeletedWalletItem', deleted: boolean | null, optionId: string | null }
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
   | null };

export type WatchTokenMutationVariables = Exact<{
  input: CreateWatchTokenInput;
}>;


export type WatchTokenMutation = { createWatchToken:
    | { __typename: 'InvalidInputError', message: string, fields: Array<{ path: string, message: string }> }
    | { __typename: 'OutcomeUnknownError', message: string }
    | { __typename: 'PaymentServiceError', code: string | null, type: ErrorType | null, paymentId: string | null, retryable: boolean, message: string }
    | { __typename: 'RateLimitError', retryAfterSeconds: number | null, message: string }
    | { __typename: 'WatchToken', token: string, expiresAt: string }
   | null };

export type PaymentSnapshotViewFragment = { externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null };

export type PaymentUpdatedSubscriptionVariables = Exact<{
  externalId: string | number;
  after?: string | null | undefined;
  untilFinal?: boolean | null | undefined;
}>;


export type PaymentUpdatedSubscription = { paymentUpdated: { cursor: string, state: PaymentState | null, source: EventSource, final: boolean, callOutcome: CallOutcome | null, receivedAt: string, payment: { externalId: string, operation: PaymentOperation | null, actionRequired: boolean | null, action: { type: string | null, value: string | null } | null, details: { paymentId: string | null, amount: string | null, currency: string | null, status: PaymentStatus | null, statusCode: string | null, statusDescription: string | null } | null } | null } };

export const PaymentFailureFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<PaymentFailureFragment, unknown>;
export const EventViewFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"EventView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Event"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","name":{"kind":"Name","value":"final"}},{"kind":"Field","name":{"kind":"Name","value":"callOutcome"}},{"kind":"Field","name":{"kind":"Name","value":"receivedAt"}}]}}]} as unknown as DocumentNode<EventViewFragment, unknown>;
export const PaymentViewFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}}]} as unknown as DocumentNode<PaymentViewFragment, unknown>;
export const PaymentWithStateFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentWithState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentView"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}}]} as unknown as DocumentNode<PaymentWithStateFragment, unknown>;
export const PayoutViewFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PayoutView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payout"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"transactionId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusCodeDescription"}},{"kind":"Field","name":{"kind":"Name","value":"originalAmount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}}]}}]} as unknown as DocumentNode<PayoutViewFragment, unknown>;
export const WalletItemViewFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"WalletItemView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"WalletItem"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"optionId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"isConfirmed"}},{"kind":"Field","name":{"kind":"Name","value":"isDefault"}},{"kind":"Field","name":{"kind":"Name","value":"card"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"mask"}}]}}]}}]} as unknown as DocumentNode<WalletItemViewFragment, unknown>;
export const PaymentSnapshotViewFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentSnapshotView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentSnapshot"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}}]} as unknown as DocumentNode<PaymentSnapshotViewFragment, unknown>;
export const PaymentHistoryDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"PaymentHistory"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"first"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}},"defaultValue":{"kind":"IntValue","value":"20"}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"after"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"newestFirst"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Boolean"}},"defaultValue":{"kind":"BooleanValue","value":false}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"payment"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"externalId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"eventsConnection"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"first"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"after"}}},{"kind":"Argument","name":{"kind":"Name","value":"newestFirst"},"value":{"kind":"Variable","name":{"kind":"Name","value":"newestFirst"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"edges"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"node"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"EventView"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}}]}}]}},{"kind":"Field","name":{"kind":"Name","value":"pageInfo"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"hasNextPage"}},{"kind":"Field","name":{"kind":"Name","value":"endCursor"}}]}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"EventView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Event"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","name":{"kind":"Name","value":"final"}},{"kind":"Field","name":{"kind":"Name","value":"callOutcome"}},{"kind":"Field","name":{"kind":"Name","value":"receivedAt"}}]}}]} as unknown as DocumentNode<PaymentHistoryQuery, PaymentHistoryQueryVariables>;
export const PayoutHistoryDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"PayoutHistory"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"first"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}},"defaultValue":{"kind":"IntValue","value":"20"}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"after"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"newestFirst"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Boolean"}},"defaultValue":{"kind":"BooleanValue","value":false}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"payout"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"externalId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"eventsConnection"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"first"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"after"}}},{"kind":"Argument","name":{"kind":"Name","value":"newestFirst"},"value":{"kind":"Variable","name":{"kind":"Name","value":"newestFirst"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"edges"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"node"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"EventView"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"transactionId"}}]}}]}},{"kind":"Field","name":{"kind":"Name","value":"pageInfo"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"hasNextPage"}},{"kind":"Field","name":{"kind":"Name","value":"endCursor"}}]}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"EventView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Event"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","name":{"kind":"Name","value":"final"}},{"kind":"Field","name":{"kind":"Name","value":"callOutcome"}},{"kind":"Field","name":{"kind":"Name","value":"receivedAt"}}]}}]} as unknown as DocumentNode<PayoutHistoryQuery, PayoutHistoryQueryVariables>;
export const PaymentPageDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"PaymentPage"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"payment"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"externalId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentWithState"}},{"kind":"Field","name":{"kind":"Name","value":"eventsConnection"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"IntValue","value":"20"}},{"kind":"Argument","name":{"kind":"Name","value":"newestFirst"},"value":{"kind":"BooleanValue","value":true}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"edges"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"node"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","name":{"kind":"Name","value":"final"}},{"kind":"Field","name":{"kind":"Name","value":"receivedAt"}}]}}]}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentWithState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentView"}}]}}]} as unknown as DocumentNode<PaymentPageQuery, PaymentPageQueryVariables>;
export const PayDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Pay"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"CreatePaymentInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"createPayment"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentWithState"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentWithState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentView"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<PayMutation, PayMutationVariables>;
export const ChargeAgainDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"ChargeAgain"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"CreateRecurrentPaymentInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"createRecurrentPayment"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentWithState"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentWithState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentView"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<ChargeAgainMutation, ChargeAgainMutationVariables>;
export const ConfirmDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Confirm"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ConfirmPaymentInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"confirmPayment"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentWithState"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentWithState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payment"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentView"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<ConfirmMutation, ConfirmMutationVariables>;
export const PayoutPageDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"PayoutPage"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"payout"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"externalId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"PayoutView"}},{"kind":"Field","name":{"kind":"Name","value":"outcomeUnknown"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PayoutView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payout"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"transactionId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusCodeDescription"}},{"kind":"Field","name":{"kind":"Name","value":"originalAmount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}}]}}]} as unknown as DocumentNode<PayoutPageQuery, PayoutPageQueryVariables>;
export const PayOutDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"PayOut"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"RequestPayoutInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"requestPayout"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PayoutView"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PayoutView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Payout"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"transactionId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusCodeDescription"}},{"kind":"Field","name":{"kind":"Name","value":"originalAmount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<PayOutMutation, PayOutMutationVariables>;
export const ChangeSubscriptionDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"ChangeSubscription"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"UpdateSubscriptionInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"updateSubscription"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"SubscriptionMessage"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"message"}}]}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<ChangeSubscriptionMutation, ChangeSubscriptionMutationVariables>;
export const EndSubscriptionDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"EndSubscription"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"DeactivateSubscriptionInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"deactivateSubscription"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"SubscriptionMessage"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"message"}}]}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<EndSubscriptionMutation, EndSubscriptionMutationVariables>;
export const WalletDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"Wallet"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"customer"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"CustomerInput"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"walletItems"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"customer"},"value":{"kind":"Variable","name":{"kind":"Name","value":"customer"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"WalletItemView"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"WalletItemView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"WalletItem"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"optionId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"isConfirmed"}},{"kind":"Field","name":{"kind":"Name","value":"isDefault"}},{"kind":"Field","name":{"kind":"Name","value":"card"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"mask"}}]}}]}}]} as unknown as DocumentNode<WalletQuery, WalletQueryVariables>;
export const ForgetCardDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"ForgetCard"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"DeleteWalletItemInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"deleteWalletItem"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"DeletedWalletItem"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"deleted"}},{"kind":"Field","name":{"kind":"Name","value":"optionId"}}]}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<ForgetCardMutation, ForgetCardMutationVariables>;
export const WatchTokenDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"WatchToken"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"CreateWatchTokenInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"createWatchToken"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"WatchToken"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"token"}},{"kind":"Field","name":{"kind":"Name","value":"expiresAt"}}]}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentFailure"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentFailure"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Error"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentServiceError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"retryable"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"RateLimitError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterSeconds"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"InvalidInputError"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"fields"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"path"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<WatchTokenMutation, WatchTokenMutationVariables>;
export const PaymentUpdatedDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"PaymentUpdated"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"after"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"untilFinal"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Boolean"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentUpdated"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"externalId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"externalId"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"after"}}},{"kind":"Argument","name":{"kind":"Name","value":"untilFinal"},"value":{"kind":"Variable","name":{"kind":"Name","value":"untilFinal"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cursor"}},{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","name":{"kind":"Name","value":"final"}},{"kind":"Field","name":{"kind":"Name","value":"callOutcome"}},{"kind":"Field","name":{"kind":"Name","value":"receivedAt"}},{"kind":"Field","name":{"kind":"Name","value":"payment"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"PaymentSnapshotView"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"PaymentSnapshotView"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"PaymentSnapshot"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"externalId"}},{"kind":"Field","name":{"kind":"Name","value":"operation"}},{"kind":"Field","name":{"kind":"Name","value":"actionRequired"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"type"}},{"kind":"Field","name":{"kind":"Name","value":"value"}}]}},{"kind":"Field","name":{"kind":"Name","value":"details"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"paymentId"}},{"kind":"Field","name":{"kind":"Name","value":"amount"}},{"kind":"Field","name":{"kind":"Name","value":"currency"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"statusCode"}},{"kind":"Field","name":{"kind":"Name","value":"statusDescription"}}]}}]}}]} as unknown as DocumentNode<PaymentUpdatedSubscription, PaymentUpdatedSubscriptionVariables>;