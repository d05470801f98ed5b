/**
 * Writes src/gen/graphql-descriptions.json: the comments of the proto files in GraphQL's terms.
 * Generated code has no comments at run time, and no description should be written twice.
 */
import { writeFileSync } from "node:fs";
import { commentsOf, readProtos } from "./proto-comments.ts";

/** Phrases of the RPC contract, and their replacements for GraphQL. */
const phrases: readonly (readonly [rpc: string, graphql: string])[] = [
  [", sent as `X-CUSTOMER-AUTH`", ""],
  [", sent as the `external_id` query parameter", ""],
  ["CreateRecurrentPayment", "`createRecurrentPayment`"],
  ["ConfirmPayment", "`confirmPayment`"],
  [", for which the service does not demand it", ", unless the caller's token says it"],
  ["`cc` is cc_number", "`cc` is CC_NUMBER"],
  ["`decrypted_apple_pay` is apple_pay", "`decryptedApplePay` is APPLE_PAY"],
  ["`decrypted_google_pay` is google_pay", "`decryptedGooglePay` is GOOGLE_PAY"],
  ["`card` goes with `cc`", "CARD goes with `cc`"],
  ["modes hosted and express_checkout", "modes HOSTED and EXPRESS_CHECKOUT"],
  ["confirm = false", "`confirm: false`"],
  ["final = true", "`final: true`"],
  ["; then ALREADY_EXISTS", ""],
  ["FAILED_PRECONDITION, or OK with the", "A `PaymentServiceError`, or a `Payment` with the"],
  ["with the status failure", "with the status FAILURE"],
  ["NOT_FOUND if", "Null if"],
  ["NOT_FOUND when", "Null when"],
  ["UNKNOWN or DEADLINE_EXCEEDED with an OutcomeUnknown when", "An `OutcomeUnknownError` when"],
  ["ABORTED while", "CONFLICT while"],
  ["OUT_OF_RANGE when", "CURSOR_EXPIRED when"],
  ["RESOURCE_EXHAUSTED when", "RATE_LIMITED when"],
  ["UNAVAILABLE when", "UPSTREAM_UNAVAILABLE when"],
  ["UNAVAILABLE while", "UPSTREAM_UNAVAILABLE while"],
  ["resume from the last cursor", "resume from the error's `extensions.resumeCursor`"],
  [" is in its header `x-start-cursor`", ", SSE tells as its first `id`"],
  ["behind page_token", "behind `after`"],
  ["Turns automatic renewal", "Turns the automatic renewal of a billing subscription"],
  ["Deactivates a subscription", "Deactivates a billing subscription"],
  ["Removes a payment method", "Removes a payment method from a customer's wallet"],
  ["WatchPayment", "`paymentUpdated`"],
  ["WatchPayout", "`payoutUpdated`"],
  ["RequestPayout for", "`requestPayout` for"],
  ["Empty when there was no event yet", "Null when there was no event yet"],
  ["GetOperation", "`operation`"],
  ["FindWalletItems", "`walletItems`"],
  ["GetConfirmationStatus", "`walletConfirmation`"],
  ["after_cursor", "`after`"],
  ["type cc_token", "type CC_TOKEN"],
  ["hosted mode", "mode HOSTED"],
  ["mode direct", "mode DIRECT"],
  ["mode express_checkout", "mode EXPRESS_CHECKOUT"],
];

const protos = readProtos();
const messages = protos.file.flatMap((file) => file.messageType);
const fieldNames = new Set(messages.flatMap((message) => message.field.map(({ name }) => name)));

const descriptions = Object.fromEntries(
  [...commentsOf(protos)]
    // GraphQL has no services.
    .filter(([name]) => !name.endsWith("Service"))
    .map(([name, comment]) => [name, inGraphql(comment)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1)),
);
writeFileSync("src/gen/graphql-descriptions.json", `${JSON.stringify(descriptions, null, 2)}\n`);

/**
 * Replaces phrases, and field names by their camelCase names. Of a field that is deprecated for
 * another one, GraphQL has one form alone.
 */
function inGraphql(text: string): string {
  return phrases
    .reduce((result, [rpc, graphql]) => result.replaceAll(rpc, graphql), text)
    .replace(/ Deprecated: .*$/, "")
    .replace(/ \((?:GET|POST|PATCH|DELETE) \/api[^)]*\)/, "")
    .replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, (word) =>
      fieldNames.has(word) ? word.replace(/_(.)/g, (_, c: string) => c.toUpperCase()) : word,
    );
}
