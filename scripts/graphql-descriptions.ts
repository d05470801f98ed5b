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

// GraphQL has no services and methods.
const services = /Service(\.|$)/;
const descriptions = Object.fromEntries(
  [...commentsOf(protos)]
    .filter(([name]) => !services.test(name))
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
    .replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, (word) =>
      fieldNames.has(word) ? word.replace(/_(.)/g, (_, c: string) => c.toUpperCase()) : word,
    );
}
