import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { directory } from "../stores/sqlite/directories.ts";
import { root, runScript } from "./script.ts";

test("accepts new fields in the proto and in GraphQL", async (t) => {
  const dir = await copyOfContract(t);
  await edit(dir, "proto/payments/v1/payment.proto", /^message Action \{$/m, (found) => {
    return `${found}\n  // New.\n  optional string added = 1000;`;
  });
  await edit(dir, "schema.graphql", /^type Action \{$/m, (found) => `${found}\n  added: String`);
  assert.deepEqual(await compare(dir), { code: 0, err: "" });
});

/** Breaking changes of the contract, and the message for each. */
const planted = [
  {
    what: "a field of a message",
    file: "proto/payments/v1/operation_service.proto",
    from: /^ {2}string operation_id = 2 .*?\];$/ms,
    to: "",
    says: /field "2" with name "operation_id" on message "GetOperationRequest"/,
  },
  {
    what: "a field's type",
    file: "proto/payments/v1/subscription_service.proto",
    from: /optional bool auto_renew/,
    to: "optional string auto_renew",
    says: /Field "3" with name "auto_renew".*changed type/,
  },
  {
    what: "a method",
    file: "proto/payments/v1/subscription_service.proto",
    from: /^ {2}rpc DeactivateSubscription\(.*?^ {2}\}$/ms,
    to: "",
    says: /RPC "DeactivateSubscription" on service "SubscriptionService"/,
  },
  {
    what: "a field in GraphQL",
    file: "schema.graphql",
    from: /^ {2}resetSeconds: .*$/m,
    to: "  resetMs: Int!",
    says: /schema\.graphql: Field RateLimit\.resetSeconds was removed/,
  },
  {
    what: "an argument in GraphQL",
    file: "schema.graphql",
    from: /^ {2}payout\([^)]*\): Payout$/m,
    to: "  payout(id: ID): Payout",
    says: /schema\.graphql: Argument Query\.payout\(externalId:\) was removed/,
  },
  {
    what: "an enum's value in GraphQL",
    file: "schema.graphql",
    from: /^ {2}PARTIALLY_REFUNDED$/m,
    to: "  PARTLY_REFUNDED",
    says: /schema\.graphql: Enum value PaymentState\.PARTIALLY_REFUNDED was removed/,
  },
];

test("names each breaking change, and renew refuses them, unless --breaking is given", async (t) => {
  const dir = await copyOfContract(t);
  for (const { file, from, to } of planted) await edit(dir, file, from, () => to);

  const { code, err } = await compare(dir);
  assert.equal(code, 1);
  for (const { what, says } of planted) assert.match(err, says, what);

  const released = () => readFile(join(dir, "released/schema.graphql"), "utf8");
  const before = await released();
  assert.equal((await compare(dir, "renew")).code, 1);
  assert.equal(await released(), before);

  assert.equal((await compare(dir, "renew", "--breaking")).code, 0);
  assert.deepEqual(await compare(dir), { code: 0, err: "" });
  assert.match(await released(), /^ {2}resetMs: Int!$/m);
});

/** Copies what the check reads into a directory of its own. */
async function copyOfContract(t: TestContext): Promise<string> {
  const dir = directory(t);
  for (const name of ["buf.yaml", "proto", "third_party", "released", "schema.graphql"]) {
    await cp(join(root, name), join(dir, name), { recursive: true });
  }
  return dir;
}

async function edit(dir: string, file: string, from: RegExp, to: (found: string) => string) {
  const text = await readFile(join(dir, file), "utf8");
  assert.match(text, from);
  await writeFile(join(dir, file), text.replace(from, to));
}

async function compare(cwd: string, ...args: readonly string[]) {
  const { code, err } = await runScript("change-policy.ts", args, { cwd });
  return { code, err };
}
