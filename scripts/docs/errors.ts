/**
 * Writes the tables in docs/errors.md: the reasons of the gateway's own errors, and the RPC and
 * GraphQL error for every error code of the payments service with what the customer is told, from
 * the tables that the gateway itself uses.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { mappings } from "../../src/graphql/errors.ts";
import { overloadedReason } from "../../src/net/overloaded.ts";
import { compressionNotNamed } from "../../src/rpc/errors.ts";
import { listedCodes, type Retry, readingOf } from "../../src/upstream/error-codes.ts";
import { userMessage } from "../../src/upstream/user-message.ts";

const retries: Readonly<Record<Retry, string>> = {
  no: "no: it would fail again as it is",
  newToken: "with a new customer token",
  otherCard: "with another card, or later",
  after: "after the pause that the error tells",
  yes: "yes",
  lookUp: "look the payment up first",
};

/**
 * The reasons of the gateway's own errors, with the codes that they come with. `reasonsOf` finds
 * those in the code; each of them needs its row here.
 */
const reasons: Readonly<Record<string, readonly [codes: string, meaning: string]>> = {
  API_KEY_REVOKED: [
    "UNAUTHENTICATED",
    "ends a stream: its API key was removed or changed meanwhile",
  ],
  CALL_IN_FLIGHT: [
    "ABORTED",
    "another call of this method for the same `external_id` has no answer yet",
  ],
  COMPRESSION_NOT_NAMED: [
    "INTERNAL",
    "a gRPC message is flagged as compressed, and no `grpc-encoding` says how",
  ],
  CONNECTION_AGE: [
    "UNAVAILABLE",
    "ends a stream: its connection has reached the maximum age; connect again and resume",
  ],
  CREDENTIALS_INVALID: ["UNAUTHENTICATED", "the API key or token is not valid"],
  CREDENTIALS_MISSING: ["UNAUTHENTICATED", "the call has no `Authorization` header"],
  CURSOR_EXPIRED: [
    "OUT_OF_RANGE",
    "the cursor is older than what is kept, or of a log that was lost; watch without one",
  ],
  CUSTOMER_FOREIGN: ["PERMISSION_DENIED", "the caller's token is for another customer"],
  DEAD_LETTERS_FULL: [
    "UNAVAILABLE",
    "in the log: no more callbacks that are not understood can be kept, so that they are answered 503",
  ],
  FOREIGN_ORIGIN: ["PERMISSION_DENIED", "a page called whose origin is not in `CORS_ORIGINS`"],
  IDEMPOTENCY_KEY_REUSED: ["ALREADY_EXISTS", "the `Idempotency-Key` was used for another request"],
  INVALID_FIELDS: ["INVALID_ARGUMENT", "the fields that the error names are wrong"],
  KEY_SET_UNAVAILABLE: [
    "UNAVAILABLE",
    "a JWT cannot be checked: its issuer's keys cannot be fetched",
  ],
  LOG_CLOSED: ["UNAVAILABLE", "ends a stream: the gateway is shutting down"],
  MERCHANT_ACCOUNT_REFUSED: [
    "PERMISSION_DENIED",
    "the merchant account is unknown, not allowed to the caller, or has to be named",
  ],
  METHOD_NOT_ALLOWED: ["UNIMPLEMENTED", "`/watch` takes GET alone; HTTP status 405"],
  METHOD_NOT_OPEN: ["PERMISSION_DENIED", "the method is open to nobody"],
  NO_SUCH_PATH: ["NOT_FOUND", "nothing is below `/watch` at this path"],
  OUTCOME_UNKNOWN: [
    "UNKNOWN, DEADLINE_EXCEEDED",
    "the call was sent and its outcome is not known: do not repeat it, look it up",
  ],
  OVERLOADED: ["RESOURCE_EXHAUSTED", "the gateway has more calls than it can serve"],
  PAYMENT_UNKNOWN: ["NOT_FOUND", "the gateway knows nothing of the payment"],
  RATE_LIMITED: [
    "RESOURCE_EXHAUSTED",
    "the account's rate budget is used up, or the service said so",
  ],
  SCOPE_MISSING: ["PERMISSION_DENIED", "the caller lacks the scope that the error names"],
  SERVICES_ONLY: ["PERMISSION_DENIED", "no customer and no watch token may read this"],
  SHUTTING_DOWN: ["UNAVAILABLE", "the gateway is shutting down: another one answers"],
  SLOW_CONSUMER: [
    "RESOURCE_EXHAUSTED",
    "ends a stream: its events were read too slowly; resume from the cursor",
  ],
  STORE_UNAVAILABLE: ["UNAVAILABLE", "Redis or the disk is out of reach or too slow"],
  STREAM_OVER: [
    "UNAVAILABLE",
    "ends a stream of health or reflection that has lasted long enough: open another",
  ],
  TOKEN_EXPIRED: ["UNAUTHENTICATED", "the JWT has expired, also during a stream"],
  TOKEN_INVALID: ["UNAUTHENTICATED", "the JWT is not valid; the message says why"],
  TOO_MANY_STREAMS: [
    "RESOURCE_EXHAUSTED",
    "the caller has too many streams open, or a socket too many operations",
  ],
  UPSTREAM_UNAVAILABLE: [
    "UNAVAILABLE",
    "the payments service cannot be reached, fails, or its answer was not understood",
  ],
  WATCH_TOKENS_OFF: [
    "UNAUTHENTICATED, FAILED_PRECONDITION",
    "`WATCH_TOKEN_SECRET` is not set: the gateway makes and takes no watch tokens",
  ],
  WATCH_TOKEN_EXPIRED: ["UNAUTHENTICATED", "the watch token has expired"],
  WATCH_TOKEN_INVALID: ["UNAUTHENTICATED", "the watch token is not valid"],
};

/** The reasons in the code of the gateway. */
function reasonsOf(): Set<string> {
  const found = new Set([overloadedReason, compressionNotNamed]);
  for (const file of globSync("src/**/*.ts", { exclude: ["src/gen/**"] })) {
    const code = readFileSync(file, "utf8");
    for (const [, reason] of code.matchAll(/\breason: "([A-Z_]+)"/g)) found.add(reason as string);
  }
  return found;
}

const inCode = reasonsOf();
for (const reason of inCode.symmetricDifference(new Set(Object.keys(reasons)))) {
  throw new Error(`${reason} is in the code or in this table, and not in both`);
}
const reasonRows = Object.entries(reasons).map(([reason, [codes, meaning]]) => {
  const named = codes.split(", ").map((code) => `\`${code}\``);
  return `| \`${reason}\` | ${named.join(", ")} | ${meaning} |`;
});

const start =
  "<!-- made by `npm run generate` from src/upstream/error-codes.ts and user-message.ts; do not edit -->";
const reasonsStart = "<!-- made by `npm run generate` from scripts/docs/errors.ts; do not edit -->";
const end = "<!-- end of what is made -->";

const rows = listedCodes.toSorted().map((name) => {
  const reading = readingOf(name);
  if (!reading) throw new Error(`${name} has no reading`);
  const { toCustomer, withoutMoney, leavesOpen } = reading;
  const { code } = withoutMoney ?? reading;
  const upstream = create(UpstreamErrorSchema, { code: name });
  const outcomeUnknown = leavesOpen && { outcomeUnknown: { externalId: "" } };
  const error = { code: reading.code, details: { upstream, ...outcomeUnknown } };
  const [en, uk] = ["en", "uk"].map((locale) => userMessage(error, locale).message);
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
  return `| \`${name}\` | ${rpc} | ${graphql}, \`${mappings[code].upstream}\` | ${onMoney} | ${again}${onlyMoney} | ${en} | ${uk} |`;
});

const file = "docs/errors.md";
const text = readFileSync(file, "utf8");
const codeTable = [
  "| code | RPC | GraphQL: mutation, query | on a call that moves money | try again? | the customer is told | in Ukrainian |",
  "| --- | --- | --- | --- | --- | --- | --- |",
  ...rows,
];
const reasonTable = ["| reason | RPC | meaning |", "| --- | --- | --- |", ...reasonRows];
writeFileSync(file, replaced(replaced(text, start, codeTable), reasonsStart, reasonTable));

/** The page with a table between the mark and the end mark that follows it. */
function replaced(page: string, mark: string, table: readonly string[]): string {
  const from = page.indexOf(mark);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`${file} has lost its marks`);
  return `${page.slice(0, from)}${[mark, "", ...table, "", ""].join("\n")}${page.slice(to)}`;
}
