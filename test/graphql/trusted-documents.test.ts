import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { TrustedDocumentsOptions } from "../../src/graphql/trusted-documents.ts";
import { type Answer, serve } from "./serve.ts";
import { firstResult, socketClient } from "./socket.ts";

const text = "{ rateLimit { limit } }";
const hash = createHash("sha256").update(text).digest("hex");
const mutation = `mutation { confirmPayment(input: {externalId: "e"}) { __typename } }`;
const documents = new Map([
  [hash, text],
  ["confirm", mutation],
]);
const other = "{ rateLimit { remaining } }";
const answered = { data: { rateLimit: { limit: 10 } } };

const persisted = (sha256Hash: string) => ({ persistedQuery: { version: 1, sha256Hash } });

/* By HTTP, which asks the same: test/graphql/http-path.test.ts. */
async function start(t: TestContext, trustedDocuments?: TrustedDocumentsOptions) {
  const gateway = await serve(t, {}, trustedDocuments && { trustedDocuments });
  const client = socketClient(t, gateway);
  const send = (params: object): Promise<Answer> => firstResult(client, { query: "", ...params });
  return { send, seen: gateway.seen };
}

test("a trusted document runs by each form of its id, and any document by its text", async (t) => {
  const { send } = await start(t, { documents, only: false });
  assert.deepEqual(await send({ documentId: hash }), answered);
  assert.deepEqual(await send({ documentId: `sha256:${hash}` }), answered);
  assert.deepEqual(await send({ extensions: persisted(hash) }), answered);
  assert.deepEqual(await send({ query: text }), answered);
  assert.deepEqual(await send({ query: other }), { data: { rateLimit: { remaining: 7 } } });
  assert.equal(codeOf(await send({ documentId: "unknown" })), "PERSISTED_QUERY_NOT_FOUND");
  assert.equal(codeOf(await send({ documentId: "__proto__" })), "PERSISTED_QUERY_NOT_FOUND");
  assert.equal(codeOf(await send({ extensions: persisted("x") })), "PERSISTED_QUERY_NOT_FOUND");
});

test("no other document runs where only trusted ones are allowed", async (t) => {
  const { send, seen } = await start(t, { documents, only: true });
  const unknown = [{ documentId: "unknown" }, { extensions: persisted("unknown") }];
  for (const params of [{ query: ` ${text}` }, ...unknown.map((id) => ({ query: other, ...id }))]) {
    assert.equal(codeOf(await send(params)), "PERSISTED_QUERY_ONLY", JSON.stringify(params));
  }
  assert.deepEqual(seen(), []);
});

test("PersistedQueryNotSupported is told where no trusted documents are configured", async (t) => {
  const { send } = await start(t);
  const { errors } = await send({ extensions: persisted(hash) });
  assert.equal(errors[0].message, "PersistedQueryNotSupported");
  assert.deepEqual(await send({ query: text, extensions: persisted(hash) }), answered);
});

test("a trusted mutation does not run by GET", async (t) => {
  const gateway = await serve(t, {}, { trustedDocuments: { documents, only: true } });
  assert.equal((await fetch(`${gateway.url}?documentId=confirm`)).status, 405);
  assert.deepEqual(gateway.seen(), []);
});

test("a trusted document that does not fit the schema is refused at start", async (t) => {
  const wrong = new Map([["old", "{ noSuchField }"]]);
  await assert.rejects(
    serve(t, {}, { trustedDocuments: { documents: wrong, only: false } }),
    /document "old": Cannot query field "noSuchField"/,
  );
});

function codeOf({ errors }: Answer): string {
  return errors?.[0].extensions.code;
}
