// Generated from the rules in the proto by scripts/rules. Do not edit.

/**
 * Checks by the names of messages: whether a message certainly keeps the rules in its proto. False
 * decides nothing: protovalidate, which evaluates all rules and words the refusals, is asked then.
 */
export const surelyValid: Readonly<Record<string, ((message: any) => boolean) | undefined>> = {
  "payments.v1.CreatePaymentRequest": CreatePaymentRequest,
  "payments.v1.CreateRecurrentPaymentRequest": CreateRecurrentPaymentRequest,
  "payments.v1.ConfirmPaymentRequest": ConfirmPaymentRequest,
  "payments.v1.ResendCallbackRequest": ResendCallbackRequest,
  "payments.v1.GetPaymentRequest": GetPaymentRequest,
  "payments.v1.ListPaymentsRequest": ListPaymentsRequest,
  "payments.v1.WatchPaymentRequest": WatchPaymentRequest,
  "payments.v1.RequestPayoutRequest": RequestPayoutRequest,
  "payments.v1.GetPayoutRequest": GetPayoutRequest,
  "payments.v1.ListPayoutsRequest": ListPayoutsRequest,
  "payments.v1.WatchPayoutRequest": WatchPayoutRequest,
  "payments.v1.FindWalletItemsRequest": FindWalletItemsRequest,
  "payments.v1.GetConfirmationStatusRequest": GetConfirmationStatusRequest,
  "payments.v1.DeleteWalletItemRequest": DeleteWalletItemRequest,
  "payments.v1.UpdateSubscriptionRequest": UpdateSubscriptionRequest,
  "payments.v1.DeactivateSubscriptionRequest": DeactivateSubscriptionRequest,
  "payments.v1.GetOperationRequest": GetOperationRequest,
  "payments.v1.StreamEventsRequest": StreamEventsRequest,
  "payments.v1.ListEventsRequest": ListEventsRequest,
  "payments.v1.CreateWatchTokenRequest": CreateWatchTokenRequest,
  "payments.v1.PaymentCustomerInput": PaymentCustomerInput,
  "payments.v1.PaymentMethodInput": PaymentMethodInput,
  "payments.v1.Fingerprint": Fingerprint,
  "payments.v1.Product": Product,
  "payments.v1.PaymentRecipient": PaymentRecipient,
  "payments.v1.PayoutOrder": PayoutOrder,
  "payments.v1.Payer": Payer,
  "payments.v1.PayoutRecipient": PayoutRecipient,
  "payments.v1.CustomerIdentity": CustomerIdentity,
  "payments.v1.Card": Card,
  "payments.v1.Token": Token,
  "payments.v1.WalletOption": WalletOption,
  "payments.v1.DecryptedApplePay": DecryptedApplePay,
  "payments.v1.DecryptedGooglePay": DecryptedGooglePay,
  "payments.v1.RecipientPaymentMethod": RecipientPaymentMethod,
  "payments.v1.CardRecipient": CardRecipient,
  "payments.v1.CashRecipient": CashRecipient,
  "payments.v1.Iban": Iban,
  "payments.v1.RecipientToken": RecipientToken,
  "payments.v1.RecipientWalletOption": RecipientWalletOption,
  "payments.v1.RecipientCardNumber": RecipientCardNumber,
  "payments.v1.CardData": CardData,
};

const pattern0 = /^-?[0-9]{1,15}(\.[0-9]{1,6})?$/;
const pattern1 = /^-?0*([1-9][0-9]{14}\.[0-9]{1,6}|[1-9][0-9]{13}\.[0-9]{2,6}|[1-9][0-9]{12}\.[0-9]{3,6}|[1-9][0-9]{11}\.[0-9]{4,6}|[1-9][0-9]{10}\.[0-9]{5,6}|[1-9][0-9]{9}\.[0-9]{6})$/;
const pattern2 = /[\ud800-\udfff]/;
const pattern3 = /^https?:\/\/[^/?#]+/i;
const pattern4 = /^https?:\/\/[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w.~-]*)*(?:\?[\w.~=&-]*)?(?:#[\w.~-]*)?$/i;
const pattern5 = /^(javascript|data|vbscript|blob|file|about):/i;
const pattern6 = /^https?:/i;
const pattern7 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const pattern8 = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
const pattern9 = /^[\w.+-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;
const pattern10 = /^[!-~]+$/;
const pattern11 = /^[0-9]{3,4}$/;
const pattern12 = /^[0-9]{8,19}$/;

function CreatePaymentRequest(m: any): boolean {
  return ((m.mode !== 1) || ((m.customer !== undefined))) &&
    ((m.mode !== 1) || !((m.paymentMethod !== undefined)) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "cc")) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "ccToken")) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "wallet")) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "applePay")) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "googlePay")) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "decryptedApplePay")) || ((m.paymentMethod !== undefined) &&
    (m.paymentMethod.method.case === "decryptedGooglePay"))) &&
    ((m.mode !== 3) || (m.products.length > 0)) &&
    (m.amount !== "") &&
    (!pattern2.test(m.amount)) &&
    (m.amount.length * 3 <= 32 || Buffer.byteLength(m.amount) <= 32) &&
    ((!(true) || ((pattern0.test(m.amount)) && !(pattern1.test(m.amount))))) &&
    (m.currency !== "") &&
    (!pattern2.test(m.currency)) &&
    (m.currency.length * 3 <= 255 || Buffer.byteLength(m.currency) <= 255) &&
    (m.mode !== 0) &&
    (m.mode === 0 || m.mode === 1 || m.mode === 2 || m.mode === 3) &&
    (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (!(m.unifiedExternalId !== undefined) || ((!pattern2.test(m.unifiedExternalId)) &&
    (m.unifiedExternalId.length * 3 <= 255 || Buffer.byteLength(m.unifiedExternalId) <= 255))) &&
    (!(m.callbackUrl !== undefined) || ((!pattern2.test(m.callbackUrl)) &&
    (m.callbackUrl.length * 3 <= 2048 || Buffer.byteLength(m.callbackUrl) <= 2048) &&
    ((!(true) || ((pattern4.test(m.callbackUrl)) &&
    (pattern3.test(m.callbackUrl))))))) &&
    (!(m.resultUrl !== undefined) || ((!pattern2.test(m.resultUrl)) &&
    (m.resultUrl.length * 3 <= 2048 || Buffer.byteLength(m.resultUrl) <= 2048) &&
    ((!(true) || ((pattern4.test(m.resultUrl)) && !(pattern5.test(m.resultUrl)) &&
    (!(pattern6.test(m.resultUrl)) || (pattern3.test(m.resultUrl)))))))) &&
    (!(m.description !== undefined) || ((!pattern2.test(m.description)) &&
    (m.description.length * 3 <= 4096 || Buffer.byteLength(m.description) <= 4096))) &&
    (!(m.payload !== undefined) || ((!pattern2.test(m.payload)) &&
    (m.payload.length * 3 <= 16384 || Buffer.byteLength(m.payload) <= 16384))) &&
    (!(m.subscriptionId !== undefined) || ((!pattern2.test(m.subscriptionId)) &&
    (m.subscriptionId.length * 3 <= 255 || Buffer.byteLength(m.subscriptionId) <= 255))) &&
    (!(m.customer !== undefined) || ((PaymentCustomerInput(m.customer)))) &&
    (m.paymentMethod !== undefined) &&
    (PaymentMethodInput(m.paymentMethod)) &&
    (!(m.fingerprint !== undefined) || ((Fingerprint(m.fingerprint)))) &&
    (m.products.length <= 1000) &&
    (m.products.every(Product)) &&
    (!(m.recipient !== undefined) || ((PaymentRecipient(m.recipient)))) &&
    (!(m.colorMode !== undefined) || ((!pattern2.test(m.colorMode)) &&
    (m.colorMode === "white" || m.colorMode === "dark"))) &&
    (!(m.locale !== undefined) || ((!pattern2.test(m.locale)) &&
    (m.locale === "UK" || m.locale === "EN" || m.locale === "ES" || m.locale === "PL" || m.locale === "FR" || m.locale === "SK" || m.locale === "DE"))) &&
    (!(m.accountNumber !== undefined) || ((!pattern2.test(m.accountNumber)) &&
    (m.accountNumber.length * 3 <= 255 || Buffer.byteLength(m.accountNumber) <= 255))) &&
    (!(m.ipAddress !== undefined) || ((!pattern2.test(m.ipAddress)) &&
    (m.ipAddress.length * 3 <= 255 || Buffer.byteLength(m.ipAddress) <= 255) &&
    (pattern7.test(m.ipAddress)))) &&
    (m.waitUntil === 0 || m.waitUntil === 1 || m.waitUntil === 2);
}

function CreateRecurrentPaymentRequest(m: any): boolean {
  return (m.recurrentId !== "") &&
    (!pattern2.test(m.recurrentId)) &&
    (m.recurrentId.length * 3 <= 255 || Buffer.byteLength(m.recurrentId) <= 255) &&
    (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (!(m.unifiedExternalId !== undefined) || ((!pattern2.test(m.unifiedExternalId)) &&
    (m.unifiedExternalId.length * 3 <= 255 || Buffer.byteLength(m.unifiedExternalId) <= 255))) &&
    (m.amount !== "") &&
    (!pattern2.test(m.amount)) &&
    (m.amount.length * 3 <= 32 || Buffer.byteLength(m.amount) <= 32) &&
    ((!(true) || ((pattern0.test(m.amount)) && !(pattern1.test(m.amount))))) &&
    (!(m.callbackUrl !== undefined) || ((!pattern2.test(m.callbackUrl)) &&
    (m.callbackUrl.length * 3 <= 2048 || Buffer.byteLength(m.callbackUrl) <= 2048) &&
    ((!(true) || ((pattern4.test(m.callbackUrl)) &&
    (pattern3.test(m.callbackUrl))))))) &&
    (!(m.payload !== undefined) || ((!pattern2.test(m.payload)) &&
    (m.payload.length * 3 <= 16384 || Buffer.byteLength(m.payload) <= 16384))) &&
    (!(m.delegateApiKey !== undefined) || ((!pattern2.test(m.delegateApiKey)) &&
    (m.delegateApiKey.length * 3 <= 255 || Buffer.byteLength(m.delegateApiKey) <= 255) &&
    (pattern8.test(m.delegateApiKey)))) &&
    (!(m.subscriptionId !== undefined) || ((!pattern2.test(m.subscriptionId)) &&
    (m.subscriptionId.length * 3 <= 255 || Buffer.byteLength(m.subscriptionId) <= 255))) &&
    (m.waitUntil === 0 || m.waitUntil === 1 || m.waitUntil === 2);
}

function ConfirmPaymentRequest(m: any): boolean {
  return (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (!(m.amount !== undefined) || ((!pattern2.test(m.amount)) &&
    (m.amount.length >= 1) &&
    (m.amount.length * 3 <= 32 || Buffer.byteLength(m.amount) <= 32) &&
    ((!(true) || ((pattern0.test(m.amount)) && !(pattern1.test(m.amount))))))) &&
    (!(m.currency !== undefined) || ((!pattern2.test(m.currency)) &&
    (m.currency.length * 3 <= 255 || Buffer.byteLength(m.currency) <= 255))) &&
    (!(m.callbackUrl !== undefined) || ((!pattern2.test(m.callbackUrl)) &&
    (m.callbackUrl.length * 3 <= 2048 || Buffer.byteLength(m.callbackUrl) <= 2048) &&
    ((!(true) || ((pattern4.test(m.callbackUrl)) &&
    (pattern3.test(m.callbackUrl))))))) &&
    (!(m.payload !== undefined) || ((!pattern2.test(m.payload)) &&
    (m.payload.length * 3 <= 16384 || Buffer.byteLength(m.payload) <= 16384))) &&
    (m.waitUntil === 0 || m.waitUntil === 1 || m.waitUntil === 2);
}

function ResendCallbackRequest(m: any): boolean {
  return (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (!(m.operation !== undefined) || ((m.operation === 0 || m.operation === 1 || m.operation === 2 || m.operation === 3 || m.operation === 4 || m.operation === 5 || m.operation === 6)));
}

function GetPaymentRequest(m: any): boolean {
  return (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255);
}

function ListPaymentsRequest(m: any): boolean {
  return (m.states.length <= 1000) &&
    (m.states.every((item: any) => (item === 0 || item === 1 || item === 2 || item === 3 || item === 4 || item === 5 || item === 6 || item === 7 || item === 8) &&
    (!(item === 0)))) &&
    (m.pageSize >= 0) &&
    (!pattern2.test(m.pageToken)) &&
    (m.pageToken.length * 3 <= 255 || Buffer.byteLength(m.pageToken) <= 255);
}

function WatchPaymentRequest(m: any): boolean {
  return (!(m.fromStart === true) || !((m.afterCursor !== undefined))) &&
    (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (!(m.afterCursor !== undefined) || ((!pattern2.test(m.afterCursor)) &&
    (m.afterCursor.length >= 1) &&
    (m.afterCursor.length * 3 <= 255 || Buffer.byteLength(m.afterCursor) <= 255))) &&
    (!(m.heartbeatSeconds !== undefined) || ((m.heartbeatSeconds <= 3600) &&
    (m.heartbeatSeconds >= 1))) &&
    (!(m.heartbeat !== undefined) || (((m.heartbeat.nanos >= 0 && m.heartbeat.nanos <= 999_999_999 ? Number(m.heartbeat.seconds) + m.heartbeat.nanos / 1e9 : Number.NaN) <= 3600) &&
    ((m.heartbeat.nanos >= 0 && m.heartbeat.nanos <= 999_999_999 ? Number(m.heartbeat.seconds) + m.heartbeat.nanos / 1e9 : Number.NaN) >= 1)));
}

function RequestPayoutRequest(m: any): boolean {
  return ((m.payoutType !== 'card') || !((m.recipient !== undefined)) || ((m.recipient !== undefined) &&
    (m.recipient.card !== undefined))) &&
    ((m.payoutType !== 'cash') || !((m.recipient !== undefined)) || ((m.recipient !== undefined) &&
    (m.recipient.cash !== undefined))) &&
    (m.order !== undefined) &&
    (PayoutOrder(m.order)) &&
    (m.payer !== undefined) &&
    (Payer(m.payer)) &&
    (m.recipient !== undefined) &&
    (PayoutRecipient(m.recipient)) &&
    (m.payoutType !== "") &&
    (!pattern2.test(m.payoutType)) &&
    (m.payoutType.length * 3 <= 255 || Buffer.byteLength(m.payoutType) <= 255) &&
    (m.waitUntil === 0 || m.waitUntil === 1 || m.waitUntil === 2);
}

function GetPayoutRequest(m: any): boolean {
  return (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255);
}

function ListPayoutsRequest(m: any): boolean {
  return (m.states.length <= 1000) &&
    (m.states.every((item: any) => (item === 0 || item === 1 || item === 2 || item === 3 || item === 4) &&
    (!(item === 0)))) &&
    (m.pageSize >= 0) &&
    (!pattern2.test(m.pageToken)) &&
    (m.pageToken.length * 3 <= 255 || Buffer.byteLength(m.pageToken) <= 255);
}

function WatchPayoutRequest(m: any): boolean {
  return (!(m.fromStart === true) || !((m.afterCursor !== undefined))) &&
    (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (!(m.afterCursor !== undefined) || ((!pattern2.test(m.afterCursor)) &&
    (m.afterCursor.length >= 1) &&
    (m.afterCursor.length * 3 <= 255 || Buffer.byteLength(m.afterCursor) <= 255))) &&
    (!(m.heartbeatSeconds !== undefined) || ((m.heartbeatSeconds <= 3600) &&
    (m.heartbeatSeconds >= 1))) &&
    (!(m.heartbeat !== undefined) || (((m.heartbeat.nanos >= 0 && m.heartbeat.nanos <= 999_999_999 ? Number(m.heartbeat.seconds) + m.heartbeat.nanos / 1e9 : Number.NaN) <= 3600) &&
    ((m.heartbeat.nanos >= 0 && m.heartbeat.nanos <= 999_999_999 ? Number(m.heartbeat.seconds) + m.heartbeat.nanos / 1e9 : Number.NaN) >= 1)));
}

function FindWalletItemsRequest(m: any): boolean {
  return (!((m.customer !== undefined)) || !((m.customer !== undefined) &&
    (m.customer.rid !== undefined))) &&
    (m.customer !== undefined) &&
    (CustomerIdentity(m.customer)) &&
    (!(m.optionId !== undefined) || ((!pattern2.test(m.optionId)) &&
    (m.optionId.length * 3 <= 255 || Buffer.byteLength(m.optionId) <= 255)));
}

function GetConfirmationStatusRequest(m: any): boolean {
  return (!((m.customer !== undefined)) || !((m.customer !== undefined) &&
    (m.customer.rid !== undefined))) &&
    (m.customer !== undefined) &&
    (CustomerIdentity(m.customer)) &&
    (!(m.optionId !== undefined) || ((!pattern2.test(m.optionId)) &&
    (m.optionId.length >= 1) &&
    (m.optionId.length * 3 <= 255 || Buffer.byteLength(m.optionId) <= 255)));
}

function DeleteWalletItemRequest(m: any): boolean {
  return (!((m.customer !== undefined)) || !((m.customer !== undefined) &&
    (m.customer.rid !== undefined))) &&
    (m.customer !== undefined) &&
    (CustomerIdentity(m.customer)) &&
    (m.optionId !== "") &&
    (!pattern2.test(m.optionId)) &&
    (m.optionId.length * 3 <= 255 || Buffer.byteLength(m.optionId) <= 255) &&
    (pattern8.test(m.optionId)) &&
    (m.type !== "") &&
    (!pattern2.test(m.type)) &&
    (m.type.length * 3 <= 255 || Buffer.byteLength(m.type) <= 255);
}

function UpdateSubscriptionRequest(m: any): boolean {
  return (m.subscriptionId !== "") &&
    (!pattern2.test(m.subscriptionId)) &&
    (m.subscriptionId.length * 3 <= 255 || Buffer.byteLength(m.subscriptionId) <= 255) &&
    (pattern8.test(m.subscriptionId)) &&
    (!(m.customer !== undefined) || ((CustomerIdentity(m.customer))));
}

function DeactivateSubscriptionRequest(m: any): boolean {
  return (m.subscriptionId !== "") &&
    (!pattern2.test(m.subscriptionId)) &&
    (m.subscriptionId.length * 3 <= 255 || Buffer.byteLength(m.subscriptionId) <= 255) &&
    (pattern8.test(m.subscriptionId)) &&
    (!(m.customer !== undefined) || ((CustomerIdentity(m.customer))));
}

function GetOperationRequest(m: any): boolean {
  return (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (m.operationId !== "") &&
    (!pattern2.test(m.operationId)) &&
    (m.operationId.length * 3 <= 255 || Buffer.byteLength(m.operationId) <= 255);
}

function StreamEventsRequest(m: any): boolean {
  return (!(m.afterCursor !== undefined) || ((!pattern2.test(m.afterCursor)) &&
    (m.afterCursor.length >= 1) &&
    (m.afterCursor.length * 3 <= 255 || Buffer.byteLength(m.afterCursor) <= 255))) &&
    (m.kinds.length <= 1000) &&
    (m.kinds.every((item: any) => (item === 0 || item === 1 || item === 2) &&
    (!(item === 0)))) &&
    (!(m.heartbeatSeconds !== undefined) || ((m.heartbeatSeconds <= 3600) &&
    (m.heartbeatSeconds >= 1))) &&
    (!(m.heartbeat !== undefined) || (((m.heartbeat.nanos >= 0 && m.heartbeat.nanos <= 999_999_999 ? Number(m.heartbeat.seconds) + m.heartbeat.nanos / 1e9 : Number.NaN) <= 3600) &&
    ((m.heartbeat.nanos >= 0 && m.heartbeat.nanos <= 999_999_999 ? Number(m.heartbeat.seconds) + m.heartbeat.nanos / 1e9 : Number.NaN) >= 1)));
}

function ListEventsRequest(m: any): boolean {
  return (m.kind !== 0) &&
    (m.kind === 0 || m.kind === 1 || m.kind === 2) &&
    (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (m.pageSize >= 0) &&
    (!pattern2.test(m.pageToken)) &&
    (m.pageToken.length * 3 <= 255 || Buffer.byteLength(m.pageToken) <= 255);
}

function CreateWatchTokenRequest(m: any): boolean {
  return (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (m.kind !== 0) &&
    (m.kind === 0 || m.kind === 1 || m.kind === 2) &&
    (!(m.ttlSeconds !== undefined) || ((m.ttlSeconds <= 86400) &&
    (m.ttlSeconds >= 1))) &&
    (!(m.ttl !== undefined) || (((m.ttl.nanos >= 0 && m.ttl.nanos <= 999_999_999 ? Number(m.ttl.seconds) + m.ttl.nanos / 1e9 : Number.NaN) <= 86400) &&
    ((m.ttl.nanos >= 0 && m.ttl.nanos <= 999_999_999 ? Number(m.ttl.seconds) + m.ttl.nanos / 1e9 : Number.NaN) >= 1)));
}

function PaymentCustomerInput(m: any): boolean {
  return (!(m.colorMode !== undefined) || ((!pattern2.test(m.colorMode)) &&
    (m.colorMode === "white" || m.colorMode === "dark"))) &&
    (!(m.locale !== undefined) || ((!pattern2.test(m.locale)) &&
    (m.locale === "UK" || m.locale === "EN" || m.locale === "ES" || m.locale === "PL" || m.locale === "FR" || m.locale === "SK" || m.locale === "DE"))) &&
    (!(m.accountNumber !== undefined) || ((!pattern2.test(m.accountNumber)) &&
    (m.accountNumber.length * 3 <= 255 || Buffer.byteLength(m.accountNumber) <= 255))) &&
    (!(m.ipAddress !== undefined) || ((!pattern2.test(m.ipAddress)) &&
    (m.ipAddress.length * 3 <= 255 || Buffer.byteLength(m.ipAddress) <= 255) &&
    (pattern7.test(m.ipAddress)))) &&
    (!(m.address !== undefined) || ((!pattern2.test(m.address)) &&
    (m.address.length <= 50))) &&
    (!(m.city !== undefined) || ((!pattern2.test(m.city)) &&
    (m.city.length * 3 <= 255 || Buffer.byteLength(m.city) <= 255))) &&
    (!(m.country !== undefined) || ((!pattern2.test(m.country)) &&
    (m.country.length * 3 <= 255 || Buffer.byteLength(m.country) <= 255))) &&
    (!(m.email !== undefined) || ((!pattern2.test(m.email)) &&
    (m.email.length * 3 <= 255 || Buffer.byteLength(m.email) <= 255) &&
    (pattern9.test(m.email)))) &&
    (!(m.externalId !== undefined) || ((!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255))) &&
    (!(m.firstName !== undefined) || ((!pattern2.test(m.firstName)) &&
    (m.firstName.length * 3 <= 255 || Buffer.byteLength(m.firstName) <= 255))) &&
    (!(m.lastName !== undefined) || ((!pattern2.test(m.lastName)) &&
    (m.lastName.length * 3 <= 255 || Buffer.byteLength(m.lastName) <= 255))) &&
    (!(m.patronym !== undefined) || ((!pattern2.test(m.patronym)) &&
    (m.patronym.length * 3 <= 255 || Buffer.byteLength(m.patronym) <= 255))) &&
    (!(m.phone !== undefined) || ((!pattern2.test(m.phone)) &&
    (m.phone.length * 3 <= 255 || Buffer.byteLength(m.phone) <= 255))) &&
    (!(m.postalCode !== undefined) || ((!pattern2.test(m.postalCode)) &&
    (m.postalCode.length * 3 <= 255 || Buffer.byteLength(m.postalCode) <= 255)));
}

function PaymentMethodInput(m: any): boolean {
  return ((m.type !== 0) || ((m.method.case === "cc")) || ((m.method.case === "ccToken")) || ((m.method.case === "wallet")) || ((m.method.case === "applePay")) || ((m.method.case === "googlePay")) || ((m.method.case === "decryptedApplePay")) || ((m.method.case === "decryptedGooglePay"))) &&
    ((m.type === 0) || (!((m.method.case === "cc")) || (m.type === 2 || m.type === 6)) &&
    (!((m.method.case === "ccToken")) || (m.type === 1)) &&
    (!((m.method.case === "wallet")) || (m.type === 3)) &&
    (!(((m.method.case === "googlePay")) || ((m.method.case === "decryptedGooglePay"))) || (m.type === 4)) &&
    (!(((m.method.case === "applePay")) || ((m.method.case === "decryptedApplePay"))) || (m.type === 5))) &&
    (m.type === 0 || m.type === 1 || m.type === 2 || m.type === 3 || m.type === 4 || m.type === 5 || m.type === 6) &&
    (!(m.method.case === "cc") || ((Card(m.method.value)))) &&
    (!(m.method.case === "ccToken") || ((Token(m.method.value)))) &&
    (!(m.method.case === "wallet") || ((WalletOption(m.method.value)))) &&
    (!(m.method.case === "applePay") || ((Token(m.method.value)))) &&
    (!(m.method.case === "googlePay") || ((Token(m.method.value)))) &&
    (!(m.method.case === "decryptedApplePay") || ((DecryptedApplePay(m.method.value)))) &&
    (!(m.method.case === "decryptedGooglePay") || ((DecryptedGooglePay(m.method.value))));
}

function Fingerprint(m: any): boolean {
  return (m.browserAcceptHeader !== undefined) &&
    (!pattern2.test(m.browserAcceptHeader)) &&
    (m.browserAcceptHeader.length * 3 <= 2048 || Buffer.byteLength(m.browserAcceptHeader) <= 2048) &&
    (m.browserColorDepth !== undefined) &&
    (!pattern2.test(m.browserColorDepth)) &&
    (m.browserColorDepth.length * 3 <= 255 || Buffer.byteLength(m.browserColorDepth) <= 255) &&
    (m.browserIpAddress !== undefined) &&
    (!pattern2.test(m.browserIpAddress)) &&
    (m.browserIpAddress.length * 3 <= 255 || Buffer.byteLength(m.browserIpAddress) <= 255) &&
    (m.browserJavaEnabled !== undefined) &&
    (!pattern2.test(m.browserJavaEnabled)) &&
    (m.browserJavaEnabled.length * 3 <= 255 || Buffer.byteLength(m.browserJavaEnabled) <= 255) &&
    (m.browserLanguage !== undefined) &&
    (!pattern2.test(m.browserLanguage)) &&
    (m.browserLanguage.length * 3 <= 255 || Buffer.byteLength(m.browserLanguage) <= 255) &&
    (m.browserScreenHeight !== undefined) &&
    (!pattern2.test(m.browserScreenHeight)) &&
    (m.browserScreenHeight.length * 3 <= 255 || Buffer.byteLength(m.browserScreenHeight) <= 255) &&
    (m.browserScreenWidth !== undefined) &&
    (!pattern2.test(m.browserScreenWidth)) &&
    (m.browserScreenWidth.length * 3 <= 255 || Buffer.byteLength(m.browserScreenWidth) <= 255) &&
    (m.browserTimeZone !== undefined) &&
    (!pattern2.test(m.browserTimeZone)) &&
    (m.browserTimeZone.length * 3 <= 255 || Buffer.byteLength(m.browserTimeZone) <= 255) &&
    (m.browserTimeZoneOffset !== undefined) &&
    (!pattern2.test(m.browserTimeZoneOffset)) &&
    (m.browserTimeZoneOffset.length * 3 <= 255 || Buffer.byteLength(m.browserTimeZoneOffset) <= 255) &&
    (m.browserUserAgent !== undefined) &&
    (!pattern2.test(m.browserUserAgent)) &&
    (m.browserUserAgent.length * 3 <= 2048 || Buffer.byteLength(m.browserUserAgent) <= 2048);
}

function Product(m: any): boolean {
  return (!(m.category !== undefined) || ((!pattern2.test(m.category)) &&
    (m.category.length * 3 <= 255 || Buffer.byteLength(m.category) <= 255))) &&
    (!(m.currency !== undefined) || ((!pattern2.test(m.currency)) &&
    (m.currency.length * 3 <= 255 || Buffer.byteLength(m.currency) <= 255))) &&
    (!(m.description !== undefined) || ((!pattern2.test(m.description)) &&
    (m.description.length * 3 <= 4096 || Buffer.byteLength(m.description) <= 4096))) &&
    (!(m.id !== undefined) || ((!pattern2.test(m.id)) &&
    (m.id.length * 3 <= 255 || Buffer.byteLength(m.id) <= 255))) &&
    (!(m.image !== undefined) || ((!pattern2.test(m.image)) &&
    (m.image.length * 3 <= 2048 || Buffer.byteLength(m.image) <= 2048))) &&
    (!(m.name !== undefined) || ((!pattern2.test(m.name)) &&
    (m.name.length * 3 <= 255 || Buffer.byteLength(m.name) <= 255))) &&
    (!(m.url !== undefined) || ((!pattern2.test(m.url)) &&
    (m.url.length * 3 <= 2048 || Buffer.byteLength(m.url) <= 2048))) &&
    (!(m.netAmount !== undefined) || ((!pattern2.test(m.netAmount)) &&
    (m.netAmount.length * 3 <= 32 || Buffer.byteLength(m.netAmount) <= 32) &&
    ((!(true) || ((pattern0.test(m.netAmount)) && !(pattern1.test(m.netAmount))))))) &&
    (!(m.vatAmount !== undefined) || ((!pattern2.test(m.vatAmount)) &&
    (m.vatAmount.length * 3 <= 32 || Buffer.byteLength(m.vatAmount) <= 32) &&
    ((!(true) || ((pattern0.test(m.vatAmount)) && !(pattern1.test(m.vatAmount))))))) &&
    (!(m.quantity !== undefined) || ((!pattern2.test(m.quantity)) &&
    (m.quantity.length * 3 <= 32 || Buffer.byteLength(m.quantity) <= 32) &&
    ((!(true) || ((pattern0.test(m.quantity)) && !(pattern1.test(m.quantity))))))) &&
    (!(m.taxGroup !== undefined) || ((m.taxGroup <= 9) &&
    (m.taxGroup >= 1)));
}

function PaymentRecipient(m: any): boolean {
  return (!(m.address !== undefined) || ((!pattern2.test(m.address)) &&
    (m.address.length <= 50))) &&
    (!(m.city !== undefined) || ((!pattern2.test(m.city)) &&
    (m.city.length * 3 <= 255 || Buffer.byteLength(m.city) <= 255))) &&
    (!(m.country !== undefined) || ((!pattern2.test(m.country)) &&
    (m.country.length * 3 <= 255 || Buffer.byteLength(m.country) <= 255))) &&
    (!(m.email !== undefined) || ((!pattern2.test(m.email)) &&
    (m.email.length * 3 <= 255 || Buffer.byteLength(m.email) <= 255) &&
    (pattern9.test(m.email)))) &&
    (!(m.externalId !== undefined) || ((!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255))) &&
    (!(m.firstName !== undefined) || ((!pattern2.test(m.firstName)) &&
    (m.firstName.length * 3 <= 255 || Buffer.byteLength(m.firstName) <= 255))) &&
    (!(m.lastName !== undefined) || ((!pattern2.test(m.lastName)) &&
    (m.lastName.length * 3 <= 255 || Buffer.byteLength(m.lastName) <= 255))) &&
    (!(m.patronym !== undefined) || ((!pattern2.test(m.patronym)) &&
    (m.patronym.length * 3 <= 255 || Buffer.byteLength(m.patronym) <= 255))) &&
    (!(m.phone !== undefined) || ((!pattern2.test(m.phone)) &&
    (m.phone.length * 3 <= 255 || Buffer.byteLength(m.phone) <= 255))) &&
    (!(m.postalCode !== undefined) || ((!pattern2.test(m.postalCode)) &&
    (m.postalCode.length * 3 <= 255 || Buffer.byteLength(m.postalCode) <= 255))) &&
    (!(m.rid !== undefined) || ((!pattern2.test(m.rid)) &&
    (m.rid.length * 3 <= 255 || Buffer.byteLength(m.rid) <= 255))) &&
    (!(m.tin !== undefined) || ((!pattern2.test(m.tin)) &&
    (m.tin.length * 3 <= 255 || Buffer.byteLength(m.tin) <= 255))) &&
    (m.paymentMethod !== undefined) &&
    (RecipientPaymentMethod(m.paymentMethod));
}

function PayoutOrder(m: any): boolean {
  return (!(m.callbackUrl !== undefined) || ((!pattern2.test(m.callbackUrl)) &&
    (m.callbackUrl.length * 3 <= 2048 || Buffer.byteLength(m.callbackUrl) <= 2048) &&
    ((!(true) || ((pattern4.test(m.callbackUrl)) &&
    (pattern3.test(m.callbackUrl))))))) &&
    (m.currency !== "") &&
    (!pattern2.test(m.currency)) &&
    (m.currency.length * 3 <= 255 || Buffer.byteLength(m.currency) <= 255) &&
    (m.description !== "") &&
    (!pattern2.test(m.description)) &&
    (m.description.length * 3 <= 4096 || Buffer.byteLength(m.description) <= 4096) &&
    (m.externalId !== "") &&
    (!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255) &&
    (m.originalAmount !== "") &&
    (!pattern2.test(m.originalAmount)) &&
    (m.originalAmount.length * 3 <= 32 || Buffer.byteLength(m.originalAmount) <= 32) &&
    ((!(true) || ((pattern0.test(m.originalAmount)) && !(pattern1.test(m.originalAmount)))));
}

function Payer(m: any): boolean {
  return (m.entityId !== "") &&
    (!pattern2.test(m.entityId)) &&
    (m.entityId.length * 3 <= 255 || Buffer.byteLength(m.entityId) <= 255);
}

function PayoutRecipient(m: any): boolean {
  return (!(m.card !== undefined) || ((CardRecipient(m.card)))) &&
    (!(m.cash !== undefined) || ((CashRecipient(m.cash))));
}

function CustomerIdentity(m: any): boolean {
  return (((m.authToken !== undefined)) || ((m.rid !== undefined)) || ((m.externalId !== undefined))) &&
    (!(m.authToken !== undefined) || ((!pattern2.test(m.authToken)) &&
    (m.authToken.length >= 1) &&
    (m.authToken.length * 3 <= 8192 || Buffer.byteLength(m.authToken) <= 8192) &&
    ((!(true) || (pattern10.test(m.authToken)))))) &&
    (!(m.rid !== undefined) || ((!pattern2.test(m.rid)) &&
    (m.rid.length * 3 <= 255 || Buffer.byteLength(m.rid) <= 255) &&
    (pattern8.test(m.rid)))) &&
    (!(m.externalId !== undefined) || ((!pattern2.test(m.externalId)) &&
    (m.externalId.length >= 1) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255)));
}

function Card(m: any): boolean {
  return (m.cvv !== "") &&
    (!pattern2.test(m.cvv)) &&
    (m.cvv.length * 3 <= 255 || Buffer.byteLength(m.cvv) <= 255) &&
    ((!(true) || (pattern11.test(m.cvv)))) &&
    (m.expMonth !== 0) &&
    (m.expMonth <= 12) &&
    (m.expMonth >= 1) &&
    (m.expYear !== 0) &&
    (m.expYear <= 9999) &&
    (m.expYear >= 1) &&
    (m.number !== "") &&
    (!pattern2.test(m.number)) &&
    (m.number.length * 3 <= 255 || Buffer.byteLength(m.number) <= 255) &&
    ((!(true) || (pattern12.test(m.number))));
}

function Token(m: any): boolean {
  return (m.token !== "") &&
    (!pattern2.test(m.token)) &&
    (m.token.length * 3 <= 16384 || Buffer.byteLength(m.token) <= 16384);
}

function WalletOption(m: any): boolean {
  return (m.optionId !== "") &&
    (!pattern2.test(m.optionId)) &&
    (m.optionId.length * 3 <= 255 || Buffer.byteLength(m.optionId) <= 255) &&
    (pattern8.test(m.optionId));
}

function DecryptedApplePay(m: any): boolean {
  return (m.applicationPrimaryAccountNumber !== "") &&
    (!pattern2.test(m.applicationPrimaryAccountNumber)) &&
    (m.applicationPrimaryAccountNumber.length * 3 <= 255 || Buffer.byteLength(m.applicationPrimaryAccountNumber) <= 255) &&
    (m.applicationExpirationDate !== "") &&
    (!pattern2.test(m.applicationExpirationDate)) &&
    (m.applicationExpirationDate.length * 3 <= 255 || Buffer.byteLength(m.applicationExpirationDate) <= 255) &&
    (m.onlinePaymentCryptogram !== "") &&
    (!pattern2.test(m.onlinePaymentCryptogram)) &&
    (m.onlinePaymentCryptogram.length * 3 <= 1024 || Buffer.byteLength(m.onlinePaymentCryptogram) <= 1024) &&
    (!(m.currencyCode !== undefined) || ((!pattern2.test(m.currencyCode)) &&
    (m.currencyCode.length * 3 <= 255 || Buffer.byteLength(m.currencyCode) <= 255))) &&
    (!(m.deviceManufacturerIdentifier !== undefined) || ((!pattern2.test(m.deviceManufacturerIdentifier)) &&
    (m.deviceManufacturerIdentifier.length * 3 <= 255 || Buffer.byteLength(m.deviceManufacturerIdentifier) <= 255))) &&
    (!(m.transactionId !== undefined) || ((!pattern2.test(m.transactionId)) &&
    (m.transactionId.length * 3 <= 255 || Buffer.byteLength(m.transactionId) <= 255))) &&
    (!(m.ephemeralPublicKey !== undefined) || ((!pattern2.test(m.ephemeralPublicKey)) &&
    (m.ephemeralPublicKey.length * 3 <= 1024 || Buffer.byteLength(m.ephemeralPublicKey) <= 1024))) &&
    (!(m.publicKeyHash !== undefined) || ((!pattern2.test(m.publicKeyHash)) &&
    (m.publicKeyHash.length * 3 <= 1024 || Buffer.byteLength(m.publicKeyHash) <= 1024))) &&
    (!(m.eciIndicator !== undefined) || ((!pattern2.test(m.eciIndicator)) &&
    (m.eciIndicator.length * 3 <= 255 || Buffer.byteLength(m.eciIndicator) <= 255)));
}

function DecryptedGooglePay(m: any): boolean {
  return (m.pan !== "") &&
    (!pattern2.test(m.pan)) &&
    (m.pan.length * 3 <= 255 || Buffer.byteLength(m.pan) <= 255) &&
    (m.expMonth !== 0) &&
    (m.expMonth <= 12) &&
    (m.expMonth >= 1) &&
    (m.expYear !== 0) &&
    (m.expYear <= 9999) &&
    (m.expYear >= 1) &&
    (m.cryptogram !== "") &&
    (!pattern2.test(m.cryptogram)) &&
    (m.cryptogram.length * 3 <= 1024 || Buffer.byteLength(m.cryptogram) <= 1024) &&
    (!(m.eciIndicator !== undefined) || ((!pattern2.test(m.eciIndicator)) &&
    (m.eciIndicator.length * 3 <= 255 || Buffer.byteLength(m.eciIndicator) <= 255))) &&
    (!(m.authMethod !== undefined) || ((!pattern2.test(m.authMethod)) &&
    (m.authMethod.length * 3 <= 255 || Buffer.byteLength(m.authMethod) <= 255))) &&
    (!(m.gatewayMerchantId !== undefined) || ((!pattern2.test(m.gatewayMerchantId)) &&
    (m.gatewayMerchantId.length * 3 <= 255 || Buffer.byteLength(m.gatewayMerchantId) <= 255))) &&
    (!(m.messageId !== undefined) || ((!pattern2.test(m.messageId)) &&
    (m.messageId.length * 3 <= 255 || Buffer.byteLength(m.messageId) <= 255))) &&
    (!(m.messageExpiration !== undefined) || ((!pattern2.test(m.messageExpiration)) &&
    (m.messageExpiration.length * 3 <= 255 || Buffer.byteLength(m.messageExpiration) <= 255))) &&
    (!(m.paymentMethod !== undefined) || ((!pattern2.test(m.paymentMethod)) &&
    (m.paymentMethod.length * 3 <= 255 || Buffer.byteLength(m.paymentMethod) <= 255))) &&
    (!(m.protocolVersion !== undefined) || ((!pattern2.test(m.protocolVersion)) &&
    (m.protocolVersion.length * 3 <= 255 || Buffer.byteLength(m.protocolVersion) <= 255)));
}

function RecipientPaymentMethod(m: any): boolean {
  return ((m.type === 0) || (!((m.method.case === "iban")) || (m.type === 1)) &&
    (!((m.method.case === "ccToken")) || (m.type === 2)) &&
    (!((m.method.case === "wallet")) || (m.type === 3)) &&
    (!((m.method.case === "ccNumber")) || (m.type === 4))) &&
    (m.method.case !== undefined) &&
    (m.type === 0 || m.type === 1 || m.type === 2 || m.type === 3 || m.type === 4) &&
    (!(m.method.case === "iban") || ((Iban(m.method.value)))) &&
    (!(m.method.case === "ccToken") || ((RecipientToken(m.method.value)))) &&
    (!(m.method.case === "wallet") || ((RecipientWalletOption(m.method.value)))) &&
    (!(m.method.case === "ccNumber") || ((RecipientCardNumber(m.method.value))));
}

function CardRecipient(m: any): boolean {
  return (!(m.email !== undefined) || ((!pattern2.test(m.email)) &&
    (m.email.length * 3 <= 255 || Buffer.byteLength(m.email) <= 255) &&
    (pattern9.test(m.email)))) &&
    (m.firstName !== "") &&
    (!pattern2.test(m.firstName)) &&
    (m.firstName.length * 3 <= 255 || Buffer.byteLength(m.firstName) <= 255) &&
    (m.lastName !== "") &&
    (!pattern2.test(m.lastName)) &&
    (m.lastName.length * 3 <= 255 || Buffer.byteLength(m.lastName) <= 255) &&
    (!(m.middleName !== undefined) || ((!pattern2.test(m.middleName)) &&
    (m.middleName.length * 3 <= 255 || Buffer.byteLength(m.middleName) <= 255))) &&
    (!(m.phone !== undefined) || ((!pattern2.test(m.phone)) &&
    (m.phone.length * 3 <= 255 || Buffer.byteLength(m.phone) <= 255))) &&
    (!(m.rid !== undefined) || ((!pattern2.test(m.rid)) &&
    (m.rid.length * 3 <= 255 || Buffer.byteLength(m.rid) <= 255) &&
    (pattern8.test(m.rid)))) &&
    (!(m.ipn !== undefined) || ((!pattern2.test(m.ipn)) &&
    (m.ipn.length * 3 <= 255 || Buffer.byteLength(m.ipn) <= 255))) &&
    (!(m.externalId !== undefined) || ((!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255))) &&
    (!(m.cardData !== undefined) || ((CardData(m.cardData))));
}

function CashRecipient(m: any): boolean {
  return (!(m.email !== undefined) || ((!pattern2.test(m.email)) &&
    (m.email.length * 3 <= 255 || Buffer.byteLength(m.email) <= 255) &&
    (pattern9.test(m.email)))) &&
    (m.firstName !== "") &&
    (!pattern2.test(m.firstName)) &&
    (m.firstName.length * 3 <= 255 || Buffer.byteLength(m.firstName) <= 255) &&
    (m.lastName !== "") &&
    (!pattern2.test(m.lastName)) &&
    (m.lastName.length * 3 <= 255 || Buffer.byteLength(m.lastName) <= 255) &&
    (!(m.middleName !== undefined) || ((!pattern2.test(m.middleName)) &&
    (m.middleName.length * 3 <= 255 || Buffer.byteLength(m.middleName) <= 255))) &&
    (!(m.phone !== undefined) || ((!pattern2.test(m.phone)) &&
    (m.phone.length * 3 <= 255 || Buffer.byteLength(m.phone) <= 255))) &&
    (!(m.rid !== undefined) || ((!pattern2.test(m.rid)) &&
    (m.rid.length * 3 <= 255 || Buffer.byteLength(m.rid) <= 255) &&
    (pattern8.test(m.rid)))) &&
    (!(m.ipn !== undefined) || ((!pattern2.test(m.ipn)) &&
    (m.ipn.length * 3 <= 255 || Buffer.byteLength(m.ipn) <= 255))) &&
    (!(m.externalId !== undefined) || ((!pattern2.test(m.externalId)) &&
    (m.externalId.length * 3 <= 255 || Buffer.byteLength(m.externalId) <= 255)));
}

function Iban(m: any): boolean {
  return (m.iban !== "") &&
    (!pattern2.test(m.iban)) &&
    (m.iban.length * 3 <= 255 || Buffer.byteLength(m.iban) <= 255);
}

function RecipientToken(m: any): boolean {
  return (m.token !== "") &&
    (!pattern2.test(m.token)) &&
    (m.token.length * 3 <= 4096 || Buffer.byteLength(m.token) <= 4096);
}

function RecipientWalletOption(m: any): boolean {
  return (m.optionId !== "") &&
    (!pattern2.test(m.optionId)) &&
    (m.optionId.length * 3 <= 255 || Buffer.byteLength(m.optionId) <= 255) &&
    (pattern8.test(m.optionId));
}

function RecipientCardNumber(m: any): boolean {
  return (m.number !== "") &&
    (!pattern2.test(m.number)) &&
    (m.number.length * 3 <= 255 || Buffer.byteLength(m.number) <= 255) &&
    ((!(true) || (pattern12.test(m.number))));
}

function CardData(m: any): boolean {
  return (((m.number !== undefined)) || ((m.token !== undefined))) &&
    (!(((m.number !== undefined)) &&
    ((m.token !== undefined)))) &&
    (!(m.number !== undefined) || ((!pattern2.test(m.number)) &&
    (m.number.length * 3 <= 255 || Buffer.byteLength(m.number) <= 255) &&
    ((!(true) || (pattern12.test(m.number)))))) &&
    (!(m.token !== undefined) || ((!pattern2.test(m.token)) &&
    (m.token.length >= 1) &&
    (m.token.length * 3 <= 4096 || Buffer.byteLength(m.token) <= 4096))) &&
    (!(m.optionId !== undefined) || ((!pattern2.test(m.optionId)) &&
    (m.optionId.length * 3 <= 255 || Buffer.byteLength(m.optionId) <= 255)));
}
