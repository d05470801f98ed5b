/**
 * Writes docs/endpoints.md: every method with its REST call, scope, GraphQL field, request and
 * response, from the proto's comments and options.
 */
import { readFileSync, writeFileSync } from "node:fs";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { field as rules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { buildSchema } from "graphql";
import { endpoint, moves_money, scope, wire } from "../../src/gen/payments/v1/options_pb.ts";
import { kinds } from "../../src/model/kinds.ts";
import { services as served } from "../../src/rpc/services/routes.ts";
import { commentsOf, readProtos } from "../proto-comments.ts";

const comments = commentsOf(readProtos());
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

const described: DescMessage[] = [];
const order = ["Payment", "Payout", "Wallet", "Subscription", "Operation", "Event"];
const services = served.toSorted((a, b) => order.indexOf(stem(a)) - order.indexOf(stem(b)));

const text = [
  "# Endpoints",
  "",
  "Every method of the gateway: the REST call that it makes, the scope that its caller needs, and its fields. Made from [the proto](../proto/payments/v1) by `npm run generate`; do not edit.",
  "",
  "A field's name in REST is its name here, unless another one is given; GraphQL has the same names in camelCase. JSON has two casings: requests to Connect may name a field either way (`external_id`, `externalId`) and its answers have camelCase, as protobuf defines it; REST, callbacks and `--json` of the command line have the names below. Messages that several methods share stand [at the end](#messages).",
  "",
  "| method | GraphQL | REST | scope |",
  "| --- | --- | --- | --- |",
  ...services.flatMap((service) => service.methods.map((method) => overview(method))),
  ...services.flatMap((service) => [
    "",
    `## ${service.name}`,
    "",
    ...paragraphs(service.name),
    ...service.methods.flatMap(methodSection),
  ]),
  "",
  "## Messages",
  ...messages(),
  "",
];
writeFileSync("docs/endpoints.md", text.join("\n").replace(/\n{3,}/g, "\n\n"));

function stem(service: DescService): string {
  return service.name.replace("Service", "");
}

function overview(method: DescMethod): string {
  const name = `[${method.name}](#${method.name.toLowerCase()})`;
  return `| ${name} | ${code(graphqlField(method)) || "none"} | ${code(getOption(method, endpoint)) || "none"} | ${scopeText(method)} |`;
}

function methodSection(method: DescMethod): string[] {
  const rest = getOption(method, endpoint);
  const graphql = graphqlField(method);
  const facts = [
    rest ? `REST ${code(rest)}.` : "No REST call: the gateway answers by itself.",
    `Scope ${scopeText(method)}.`,
    graphql ? `GraphQL ${code(graphql)}.` : "RPC alone.",
    ...(getOption(method, moves_money)
      ? ["Moves money: sent once, and takes an `Idempotency-Key`."]
      : []),
    ...(method.methodKind === "server_streaming" ? ["A stream."] : []),
  ];
  return [
    "",
    `### ${method.name}`,
    "",
    ...paragraphs(`${method.parent.name}.${method.name}`),
    facts.join(" "),
    ...fields("Request", method.input),
    ...fields("Answer", method.output),
  ];
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

function fields(title: string, message: DescMessage): string[] {
  if (message.fields.length === 0) return ["", `${title}: empty.`];
  return [
    "",
    `${title}:`,
    "",
    "| field | type | meaning |",
    "| --- | --- | --- |",
    ...message.fields.map(fieldRow),
  ];
}

function fieldRow(field: DescField): string {
  const { name, number, omit } = getOption(field, wire);
  const required = hasOption(field, rules) && getOption(field, rules).required === true;
  const notes = [
    required ? "**Required.**" : "",
    oneLine(comments.get(`${field.parent.name}.${field.name}`) ?? ""),
    name ? `In REST ${code(name)}.` : "",
    number ? "In REST a JSON number, digit for digit." : "",
    omit ? "Not in the REST body." : "",
  ];
  return `| ${code(field.name)} | ${typeOf(field)} | ${notes.filter(Boolean).join(" ")} |`;
}

function typeOf(field: DescField): string {
  const many = field.fieldKind === "list" ? "list of " : "";
  const { message, enum: enumeration } = field;
  if (message?.file.proto.package === "payments.v1") {
    if (!described.includes(message)) described.push(message);
    return `${many}[${message.name}](#${message.name.toLowerCase()})`;
  }
  if (message) return many + code(message.name);
  if (enumeration) {
    const values = enumeration.values.filter((value) => value.number !== 0);
    return `${many}${enumeration.name}: ${values.map((value) => code(value.localName)).join(", ")}`;
  }
  return many + (field.scalar === undefined ? "" : ScalarType[field.scalar].toLowerCase());
}

/** The sections of all messages. Rows add further messages to `described` during the loop. */
function messages(): string[] {
  const lines: string[] = [];
  for (const message of described) {
    lines.push("", `### ${message.name}`, "", ...paragraphs(message.name));
    lines.push(
      "| field | type | meaning |",
      "| --- | --- | --- |",
      ...message.fields.map(fieldRow),
    );
  }
  return lines;
}

function paragraphs(name: string): string[] {
  const comment = comments.get(name);
  return comment ? [comment, ""] : [];
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

/** Formats a comment for a table cell. */
function oneLine(comment: string): string {
  return comment.replace(/\s*\n+\s*/g, " ").replaceAll("|", "\\|");
}
