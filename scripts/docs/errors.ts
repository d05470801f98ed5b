/**
 * Writes the table in docs/errors.md: the RPC and GraphQL error for every error code of the
 * payments service, from the table that the gateway itself uses, with a text for the customer.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { mappings } from "../../src/graphql/errors.ts";
import { listedCodes, type Retry, readingOf } from "../../src/upstream/error-codes.ts";
import { customerWords } from "./customer-words.ts";

const retries: Readonly<Record<Retry, string>> = {
  no: "no: it would fail again as it is",
  newToken: "with a new customer token",
  otherCard: "with another card, or later",
  after: "after the pause that the error tells",
  yes: "yes",
  lookUp: "look the payment up first",
};

const start = "<!-- made by `npm run generate` from src/upstream/error-codes.ts; do not edit -->";
const end = "<!-- end of what is made -->";

const rows = listedCodes.toSorted().map((name) => {
  const reading = readingOf(name);
  if (!reading) throw new Error(`${name} has no reading`);
  const { toCustomer, withoutMoney, leavesOpen } = reading;
  const { code } = withoutMoney ?? reading;
  const rpc = toCustomer
    ? `\`${code}\`; to a customer's token \`${toCustomer.code}\``
    : `\`${code}\``;
  // In a mutation's result, an error that the service returned has one of these two types.
  const graphql = code === "RESOURCE_EXHAUSTED" ? "`RateLimitError`" : "`PaymentServiceError`";
  let onMoney = "the same";
  if (leavesOpen) onMoney = "`UNKNOWN`, `OutcomeUnknownError`";
  else if (withoutMoney) onMoney = `\`${reading.code}\`, \`PaymentServiceError\``;
  const again = retries[(withoutMoney ?? reading).retry];
  // If the outcome is unknown, no retry is safe, even if the code allows one for reads.
  const onMoneyAgain = retries[leavesOpen ? "lookUp" : reading.retry];
  const onlyMoney = onMoneyAgain === again ? "" : `; on a call that moves money ${onMoneyAgain}`;
  return `| \`${name}\` | ${rpc} | ${graphql}, \`${mappings[code].upstream}\` | ${onMoney} | ${again}${onlyMoney} | ${customerWords(name, reading)} |`;
});

const made = [
  start,
  "",
  "| code | RPC | GraphQL: mutation, query | on a call that moves money | try again? | tell the customer |",
  "| --- | --- | --- | --- | --- | --- |",
  ...rows,
  "",
  end,
].join("\n");

const file = "docs/errors.md";
const text = readFileSync(file, "utf8");
const [before, rest] = text.split(start);
const after = rest?.split(end)[1];
if (before === undefined || after === undefined) throw new Error(`${file} has lost its marks`);
writeFileSync(file, before + made + after);
