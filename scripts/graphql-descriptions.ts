/**
 * Writes src/graphql/descriptions.json: the comments of the proto sources, in GraphQL's words. The
 * generated code has none at run time, and no description should be written twice.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type EnumDescriptorProto,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

/** Members of FileDescriptorProto, DescriptorProto and EnumDescriptorProto, by field number. */
const numbers = { message: 4, enum: 5, field: 2, oneof: 8, value: 2 };

/** What the RPC contract says, and what GraphQL says instead. */
const phrases: readonly (readonly [rpc: string, graphql: string])[] = [
  [", sent as `X-CUSTOMER-AUTH`", ""],
  [", sent as the `external_id` query parameter", ""],
  ["CreateRecurrentPayment", "`createRecurrentPayment`"],
  ["ConfirmPayment", "`confirmPayment`"],
  ["WatchPayment", "`paymentUpdated`"],
  ["GetOperation", "`operation`"],
  ["FindWalletItems", "`walletItems`"],
  ["GetConfirmationStatus", "`walletConfirmation`"],
  ["after_cursor", "`after`"],
  ["type cc_token", "type CC_TOKEN"],
  ["hosted mode", "mode HOSTED"],
  ["mode direct", "mode DIRECT"],
  ["mode express_checkout", "mode EXPRESS_CHECKOUT"],
];

const files = fromBinary(
  FileDescriptorSetSchema,
  execFileSync("buf", ["build", "--as-file-descriptor-set", "-o", "-"], {
    maxBuffer: 64 * 1024 * 1024,
  }),
).file.filter((file) => file.package === "payments.v1");

const fieldNames = new Set(
  files.flatMap((file) => file.messageType.flatMap((m) => m.field.map((f) => f.name))),
);

const descriptions = Object.fromEntries(
  files.flatMap(comments).sort(([a], [b]) => (a < b ? -1 : 1)),
);
writeFileSync("src/graphql/descriptions.json", `${JSON.stringify(descriptions, null, 2)}\n`);

function comments(file: FileDescriptorProto): [string, string][] {
  const at = new Map(
    file.sourceCodeInfo?.location.map((l) => [l.path.join("."), l.leadingComments]),
  );
  const found: [string, string][] = [];
  const add = (key: string, path: number[]) => {
    const comment = at.get(path.join("."));
    if (comment) found.push([key, inGraphql(paragraphs(comment))]);
  };
  file.messageType.forEach((message, m) => {
    add(message.name, [numbers.message, m]);
    message.field.forEach((field, f) => {
      add(`${message.name}.${field.name}`, [numbers.message, m, numbers.field, f]);
    });
    message.oneofDecl.forEach((oneof, o) => {
      add(`${message.name}.${oneof.name}`, [numbers.message, m, numbers.oneof, o]);
    });
  });
  file.enumType.forEach((type: EnumDescriptorProto, e) => {
    add(type.name, [numbers.enum, e]);
    type.value.forEach((value, v) => {
      add(value.name, [numbers.enum, e, numbers.value, v]);
    });
  });
  return found;
}

function paragraphs(comment: string): string {
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, " "))
    .join("\n\n");
}

/** Fields go by their camelCase names. */
function inGraphql(text: string): string {
  return phrases
    .reduce((result, [rpc, graphql]) => result.replaceAll(rpc, graphql), text)
    .replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, (word) =>
      fieldNames.has(word) ? word.replace(/_(.)/g, (_, c: string) => c.toUpperCase()) : word,
    );
}
