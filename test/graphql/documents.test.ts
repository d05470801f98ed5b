import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { Documents } from "../../src/graphql/documents.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { heapBytes } from "../collect.ts";

function documentsUpTo(bytes: { readonly maxBytes?: number } = {}): Documents {
  return new Documents({ schema, introspection: true, ...bytes });
}

const query = "query ($id: ID!) { payment(externalId: $id) { events(first: 100) { cursor } } }";

/** A valid document of 1,800 tokens that no other number gives. */
function largeQuery(number: number): string {
  const name = `${number}`.replace(/\d/g, (digit) => "abcdefghij"[+digit] ?? "");
  const details = "details { amount currency status statusCode paymentId payload rrn }";
  const customer = "customer { email firstName lastName phone ipAddress }";
  const payments = Array.from(
    { length: 48 },
    (_, at) =>
      `${name}${at}: payment(externalId: $id) { id projectId state receiptUrl isSuccess ${details} ${customer} }`,
  );
  return `query ($id: ID!) { ${payments.join(" ")} }`;
}

const payment = create(PaymentSchema, { externalId: "e", details: {}, customer: {} });
const context = { loaders: { known: async () => payment } };

/** Sends a document, and executes it: then all of it is compiled. */
async function send(documents: Documents, text: string): Promise<void> {
  const prepared = documents.find(text, undefined);
  assert.ok((await prepared.execute(prepared.accept({ id: "e" }, {}), context)).data);
}

test("a document with data in its text is not kept", async () => {
  const documents = documentsUpTo();
  for (const text of [
    `{ payment(externalId: "secret") { id } }`,
    "{ payment(externalId: 4111111111111111) { id } }",
    "# 41\n{ rateLimit { limit } }",
  ]) {
    documents.find(text, undefined);
  }
  assert.equal(documents.bytes, 0);
  const prepared = documents.find(query, undefined);
  assert.ok(documents.bytes > 0);
  assert.equal(documents.find(query, undefined), prepared);
});

test("documents are kept up to a number of bytes: those used the longest ago go", async () => {
  const documents = documentsUpTo({ maxBytes: 4_000_000 });
  const preparedOf = (number: number) => documents.find(largeQuery(number), undefined);
  await send(documents, largeQuery(0));
  const [first, ofOne] = [preparedOf(0), documents.bytes];
  assert.ok(ofOne > 500_000, `${ofOne}`);
  const second = preparedOf(1);
  for (let number = 2; number < 10; number++) {
    assert.equal(preparedOf(0), first, "it is in use");
    await send(documents, largeQuery(number));
    assert.ok(documents.bytes <= 4_000_000);
  }
  assert.notEqual(preparedOf(1), second);
});

test("fields are compared with each other only in a document that all other rules accept", () => {
  const messagesOf = (field: string) => {
    const text = `{ payment(externalId: "a") { id } payment(externalId: "b") { ${field} } }`;
    try {
      documentsUpTo().find(text, undefined);
    } catch (error) {
      return (error as AggregateError).errors.map(({ message }) => message);
    }
    return [];
  };
  assert.deepEqual(messagesOf("nope"), ['Cannot query field "nope" on type "Payment".']);
  const [conflict, ...more] = messagesOf("id");
  assert.match(conflict, /^Fields "payment" conflict/);
  assert.deepEqual(more, []);
});

test("the estimate is not below the memory that documents take", async () => {
  const documents = documentsUpTo({ maxBytes: 100_000_000 });
  await send(documents, largeQuery(0));
  const [before, estimated] = [heapBytes(), documents.bytes];
  for (let number = 1; number <= 30; number++) await send(documents, largeQuery(number));
  const [grown, counted] = [heapBytes() - before, documents.bytes - estimated];
  assert.ok(grown < counted * 1.2, `${grown} > ${counted}`);
  assert.ok(grown > counted / 4, `a control: ${grown} is far below ${counted}`);
});

test("what is compiled for each value of a directive's variable counts, too", async () => {
  const documents = documentsUpTo();
  const names = Array.from({ length: 45 }, (_, at) => `if${at}`);
  const declared = names.map((name) => `$${name}: Boolean!`).join(" ");
  const fields = names.map((name) => `${name}: id @include(if: $${name})`).join(" ");
  const text = `query ($id: ID! ${declared}) { payment(externalId: $id) { ${fields} } }`;
  const prepared = documents.find(text, undefined);
  const ask = async (number: number) => {
    const values = names.map((name, at) => [name, at < 10 && ((number >> at) & 1) === 1]);
    const accepted = prepared.accept({ id: "e", ...Object.fromEntries(values) }, {});
    await prepared.execute(accepted, context);
  };
  await ask(0);
  const [before, estimated] = [heapBytes(), documents.bytes];
  for (let number = 1; number <= 1_000; number++) await ask(number);
  const [grown, counted] = [heapBytes() - before, documents.bytes - estimated];
  assert.ok(grown < counted * 1.2, `${grown} > ${counted}`);
});
