/**
 * Writes the table in docs/errors.md: the RPC and GraphQL error for every error code of the
 * payments service, and what the customer is told, from the tables that the gateway itself uses.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { mappings } from "../../src/graphql/errors.ts";
import { listedCodes, type Retry, readingOf } from "../../src/upstream/error-codes.ts";
import { textsOf } from "../../src/upstream/user-message.ts";

const retries: Readonly<Record<Retry, string>> = {
  no: "no: it would fail again as it is",
  newToken: "with a new customer token",
  otherCard: "with another card, or later",
  after: "after the pause that the error tells",
  yes: "yes",
  lookUp: "look the payment up first",
};

const start =
  "<!-- made by `npm run generate` from src/upstream/error-codes.ts and user-message.ts; do not edit -->";
const end = "<!-- end of what is made -->";

const rows = listedCodes.toSorted().map((name) => {
  const reading = readingOf(name);
  if (!reading) throw new Error(`${name} has no reading`);
  const { toCustomer, withoutMoney, leavesOpen } = reading;
  const { code } = withoutMoney ?? reading;
  const upstream = create(UpstreamErrorSchema, { code: name });
  const outcomeUnknown = leavesOpen && { outcomeUnknown: { externalId: "" } };
  const told = textsOf({ code: reading.code, details: { upstream, ...outcomeUnknown } });
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
  return `| \`${name}\` | ${rpc} | ${graphql}, \`${mappings[code].upstream}\` | ${onMoney} | ${again}${onlyMoney} | ${told.en} | ${told.uk} |`;
});

const made = [
  start,
  "",
  "| code | RPC | GraphQL: mutation, query | on a call that moves money | try again? | the customer is told | in Ukrainian |",
  "| --- | --- | --- | --- | --- | --- | --- |",
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
