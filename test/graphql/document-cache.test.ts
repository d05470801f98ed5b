import assert from "node:assert/strict";
import { test } from "node:test";
import { GraphQLError, getOperationAST, parse } from "graphql";
import { compileOperation } from "../../src/graphql/compiled-operation.ts";
import { DocumentCache } from "../../src/graphql/document-cache.ts";
import { createMaskedSchema, schema } from "../../src/graphql/schema/schema.ts";
import { collect } from "../collect.ts";
import { serve } from "./serve.ts";

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

/** Keeps a document, and compiles it as an operation does. */
function keep(cache: DocumentCache, text: string): void {
  const document = parse(text);
  const operation = getOperationAST(document);
  assert.ok(operation);
  cache.keep(text, document);
  kept.set(
    document,
    compileOperation(schema, document, operation, (fields) => cache.addFields(document, fields)),
  );
}
const kept = new WeakMap<object, unknown>();

test("a document with data in its text is not kept", () => {
  const cache = new DocumentCache();
  for (const text of [`{ p(id: "secret") }`, "{ p(id: 4111111111111111) }", "# 41\n{ p }"]) {
    cache.keep(text, parse(text));
    assert.equal(cache.find(text), undefined);
  }
  assert.equal(cache.bytes, 0);
  keep(cache, query);
  assert.ok(cache.find(query)?.document);
});

test("documents are kept up to a number of bytes: those used the longest ago go", () => {
  const cache = new DocumentCache({ maxDocumentBytes: 4_000_000 });
  keep(cache, largeQuery(0));
  const ofOne = cache.bytes;
  assert.ok(ofOne > 500_000, `${ofOne}`);
  for (let number = 1; number < 10; number++) {
    assert.ok(cache.find(largeQuery(0))?.document, "it is in use");
    keep(cache, largeQuery(number));
    assert.ok(cache.bytes <= 4_000_000);
  }
  assert.equal(cache.find(largeQuery(1)), undefined);
  assert.ok(cache.find(largeQuery(9))?.document);
});

test("refusals are kept up to a number of bytes, without the document's text", () => {
  const cache = new DocumentCache({ maxRefusalBytes: 100_000 });
  const text = (number: number) => `{ wrong(number: "4111111111111111 ${number}") }`;
  for (let number = 0; number < 1_000; number++) {
    const nodes = parse(text(number)).definitions;
    cache.refuse(text(number), [new GraphQLError("wrong", { nodes, extensions: { code: "NO" } })]);
    assert.ok(cache.bytes <= 100_000);
  }
  assert.equal(cache.find(text(0)), undefined);
  const [error] = cache.find(text(999))?.errorsOf?.() ?? [];
  assert.deepEqual(error?.toJSON(), {
    message: "wrong",
    locations: [{ line: 1, column: 1 }],
    extensions: { code: "NO", http: { status: 400, spec: true } },
  });
});

const used = () => {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
};

test("the memory of refusals is not above their estimate, however long the texts are", () => {
  const cache = new DocumentCache();
  const refuse = (number: number) => {
    const document = parse(`{ wrong(number: ${number}, text: "${"x".repeat(20_000)}") }`);
    const text = document.loc?.source.body ?? "";
    cache.refuse(text, [new GraphQLError("wrong", { nodes: document.definitions })]);
  };
  refuse(0);
  const [before, estimated] = [used(), cache.bytes];
  for (let number = 1; number <= 500; number++) refuse(number);
  const [grown, counted] = [used() - before, cache.bytes - estimated];
  assert.ok(grown <= counted, `${grown} bytes of heap, estimated ${counted}`);
});

test("the estimate is not below the memory that documents take", () => {
  const cache = new DocumentCache({ maxDocumentBytes: 100_000_000 });
  keep(cache, largeQuery(0));
  const [before, estimated] = [used(), cache.bytes];
  for (let number = 1; number <= 30; number++) keep(cache, largeQuery(number));
  const [grown, counted] = [used() - before, cache.bytes - estimated];
  assert.ok(cache.find(largeQuery(1))?.document, "all of them are kept");
  assert.ok(grown < counted * 1.2, `${grown} > ${counted}`);
  assert.ok(grown > counted / 4, `a control: ${grown} is far below ${counted}`);
});

const refused: Record<string, string> = {
  "a syntax error": `{ payment(externalId: "e" { id } }`,
  "too many tokens": `{ ${"payment ".repeat(2_000)} }`,
  "too deep": `{ a { b { c { d { e { f { g { h { i { j { k { l } } } } } } } } } } } }`,
  "unknown fields": `{ payment(externalId: "e")\r\n{ id\n nothing ${"never\n ".repeat(9)} ${"none ".repeat(9)} } }`,
  "a wrong value": `query A { payment(externalId: "e") { events(first: "4111") { cursor } } } query B { a }`,
  "a fragment cycle": `{ payment(externalId: "e") { ...A } } fragment A on Payment { ...A }`,
  "fields that do not merge": `{ payment(externalId: "a") { id } payment(externalId: "b") { id } }`,
};

for (const [what, text] of Object.entries(refused)) {
  test(`a document with ${what} is refused alike again, without validating it again`, async (t) => {
    const own = createMaskedSchema();
    const calls = (["getType", "getField", "getDirective"] as const).map((name) =>
      t.mock.method(own, name),
    );
    const count = () => calls.reduce((sum, { mock }) => sum + mock.callCount(), 0);
    const gateway = await serve(t, {}, { schema: own });
    const ask = async (accept: string) => {
      const response = await gateway.post({ query: text }, { accept });
      return [response.status, await response.text()] as const;
    };
    for (const accept of ["application/json", "application/graphql-response+json"]) {
      const before = count();
      const first = await ask(accept);
      assert.match(first[1], /"errors":/);
      const between = count();
      assert.deepEqual(await ask(accept), first);
      assert.equal(count(), between);
      if (accept === "application/json" && !/syntax|tokens|deep/.test(what)) {
        assert.ok(between > before, "a control: it is validated at first");
      }
    }
    assert.deepEqual(gateway.seen(), []);
  });
}
