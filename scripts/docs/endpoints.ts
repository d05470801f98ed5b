/**
 * Writes docs/endpoints.md: every method with its GraphQL field, REST call and scope, from the
 * proto's options. The proto itself has the fields, with their comments.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { buildSchema } from "graphql";
import { endpoint, moves_money, scope } from "../../src/gen/payments/v1/options_pb.ts";
import { kinds } from "../../src/model/kinds.ts";
import { services as served } from "../../src/rpc/services/routes.ts";

const schema = buildSchema(readFileSync("schema.graphql", "utf8"));

/** Methods without a root field in GraphQL: a payment's events are its field `events` there. */
const rpcAlone: ReadonlySet<string> = new Set(["ListEvents"]);

/** Names of reads and watches in GraphQL; mutations have the names of their methods. */
const graphqlNames: Readonly<Record<string, string>> = {
  GetPayment: "payment",
  ListPayments: "payments",
  ListPayouts: "payouts",
  WatchPayment: "paymentUpdated",
  GetPayout: "payout",
  WatchPayout: "payoutUpdated",
  FindWalletItems: "walletItems",
  GetConfirmationStatus: "walletConfirmation",
  GetOperation: "operation",
  StreamEvents: "events",
};

const text = [
  "# Endpoints",
  "",
  "Every method of the gateway, the REST call that it makes, and the scope that its caller needs. Made from [the proto](../proto/payments/v1) by `npm run generate`; do not edit. A method in bold moves money: it is sent once, and takes an `Idempotency-Key`.",
  "",
  "| method | GraphQL | REST | scope |",
  "| --- | --- | --- | --- |",
  ...served.flatMap(({ methods }) => methods.map(row)),
  "",
  "The proto has each field with its meaning, rules and errors, and the headers that calls take. [`openapi.json`](../openapi.json) says the same for callers in JSON, [`schema.graphql`](../schema.graphql) for GraphQL.",
  "",
  "A field's name in REST is that of the proto, unless its option `wire` gives another one; GraphQL has the same names in camelCase. JSON has two casings: requests to Connect may name a field either way (`external_id`, `externalId`) and its answers have camelCase, as protobuf defines it; REST, callbacks and `--json` of the command line have the names of the proto.",
  "",
];
writeFileSync("docs/endpoints.md", text.join("\n"));

function row(method: DescMethod): string {
  const { name, parent } = method;
  const file = `../proto/${parent.file.name}.proto`;
  const link = `[${name}](${file})`;
  const graphql = graphqlField(method);
  const rest = getOption(method, endpoint);
  return `| ${getOption(method, moves_money) ? `**${link}**` : link} | ${graphql ? code(graphql) : "none"} | ${rest ? code(rest) : "none"} | ${scopeText(method)} |`;
}

/** The scope that a method needs; one that lists a kind needs the scope of that kind. */
function scopeText(method: DescMethod): string {
  const needed = getOption(method, scope);
  if (!needed.includes("{kind}")) return code(needed);
  const byKind = Object.values(kinds).map(({ resource }) => needed.replace("{kind}", resource));
  return byKind.map(code).join(" or ");
}

/** A method's root field in the schema; empty for none. @throws Error if the schema lacks it */
function graphqlField(method: DescMethod): string {
  if (rpcAlone.has(method.name)) return "";
  const kind =
    method.methodKind === "server_streaming"
      ? "Subscription"
      : method.name in graphqlNames
        ? "Query"
        : "Mutation";
  const name = graphqlNames[method.name] ?? method.localName;
  const type = schema.getType(kind);
  if (!type || !("getFields" in type) || !(name in type.getFields())) {
    throw new Error(
      `${method.name}: the schema has no ${kind}.${name} yet: add it in src/graphql/schema, then generate again`,
    );
  }
  return `${kind.toLowerCase()} ${name}`;
}

function code(text: string): string {
  return `\`${text}\``;
}
