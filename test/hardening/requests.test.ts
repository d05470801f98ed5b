import assert from "node:assert/strict";
import { test } from "node:test";
import { CloseCode } from "graphql-ws";
import { type Answer, serve } from "../graphql/serve.ts";
import { firstResult, socketClient } from "../graphql/socket.ts";

/**
 * Requests that once cost a gateway seconds or an hour: this process would stand still, and the
 * tests with it.
 */

/** Sixty fragments, each of which spreads the next one twice: 2^60 paths to the last. */
function doubling(type: "Query" | "Mutation", last: string): string {
  const fragments = Array.from(
    { length: 60 },
    (_, n) => `fragment F${n} on ${type} { ...F${n + 1} ...F${n + 1} }`,
  );
  return [...fragments, `fragment F60 on ${type} { ${last} }`].join("\n");
}

const query = `query { ...F0 } ${doubling("Query", "__typename")}`;
const resend = 'resendCallback(input: {externalId: "nobody"}) { __typename }';
const mutation = `mutation { ...F0 } ${doubling("Mutation", resend)}`;

test("fragments that double sixty times are visited once each, in every way of asking", async (t) => {
  const gateway = await serve(t, {}, { production: false });
  const get = (more: Record<string, string>) =>
    fetch(`${gateway.url}?${new URLSearchParams({ query, ...more })}`, {
      headers: { accept: "application/json" },
    });
  const answers: Answer[] = [
    await gateway.run(query),
    await (await get({})).json(),
    await (await get({ watch_token: "any" })).json(),
    await firstResult(socketClient(t, gateway), { query }),
  ];
  for (const answer of answers) assert.deepEqual(answer, { data: { __typename: "Query" } });
});

test("fragments that double sixty times are visited once each with an Idempotency-Key", async (t) => {
  const gateway = await serve(t);
  const run = (text: string) => gateway.run(text, undefined, { "idempotency-key": "k" });
  const { errors } = await run(mutation);
  assert.equal(errors[0].extensions.code, "OPERATION_TOO_COMPLEX", "by its cost");
  const { data } = await run(mutation.replace(resend, "__typename"));
  assert.deepEqual(data, { __typename: "Mutation" });
  const two = await run(mutation.replace(resend, "a: __typename b: __typename"));
  assert.match(two.errors[0].message, /^Idempotency-Key goes with one mutation/);
});

const confirm = "mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }";
/** Repeats the phrase up to this size. */
const filled = (phrase: string, bytes: number) => phrase.repeat(Math.floor(bytes / phrase.length));
const unknownKeys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, 1]));

interface Asked {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

const refusedVariables: Record<string, Asked> = {
  "90,000 unknown keys": { query: confirm, variables: { i: unknownKeys(90_000) } },
  "almost as many unknown keys as values may be": {
    query: confirm,
    variables: { i: unknownKeys(9_900) },
  },
  "a wrong value in each of many items": {
    query: "query($kinds: [EventKind!]) { walletItems(customer: {externalId: $kinds}) { name } }",
    variables: { kinds: Array.from({ length: 9_000 }, () => filled("PAYMEN", 100)) },
  },
  "lists in lists": {
    query: confirm,
    variables: { i: JSON.parse(`${"[".repeat(4_000)}${"]".repeat(4_000)}`) },
  },
  "values where no variable is declared": {
    query: "{ rateLimit { limit } }",
    variables: { more: Array.from({ length: 400_000 }, () => 1) },
  },
  "half a MB for a number": {
    query: 'query($n: Int) { payment(externalId: "e") { events(first: $n) { cursor } } }',
    variables: { n: filled(" cannot represent ", 500_000) },
  },
  "half a MB for an enum": {
    query: "mutation($i: ResendCallbackInput!) { resendCallback(input: $i) { __typename } }",
    variables: { i: { externalId: "e", operation: filled(" does not exist in ", 500_000) } },
  },
  "1 MB for an object": {
    query: confirm,
    variables: { i: filled("; found: ", 900_000) },
  },
};

/** By WebSocket, whose messages have a coder of their own, the two that cost most. */
const bySocketToo = ["almost as many unknown keys as values may be", "1 MB for an object"];

test("variables that are costly to refuse are refused with few and short messages", async (t) => {
  const gateway = await serve(t, {}, { production: false });
  const check = ({ errors }: Answer, what: string) => {
    assert.ok(errors.length > 0 && errors.length <= 11, `${what}: ${errors.length} faults`);
    for (const { extensions, message } of errors) {
      assert.match(extensions.code, /^(BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)$/, what);
      assert.ok(message.length < 1_100, what);
      assert.doesNotMatch(message, /Did you mean/, what);
    }
  };
  for (const [what, { query, variables }] of Object.entries(refusedVariables)) {
    check(await gateway.run(query, variables), what);
    if (!bySocketToo.includes(what)) continue;
    check(await firstResult(socketClient(t, gateway), { query, variables }), `${what}, by socket`);
  }
  const tooMany = refusedVariables["90,000 unknown keys"] as Asked;
  const { errors: closed } = await firstResult(socketClient(t, gateway), tooMany);
  assert.deepEqual(
    [closed.code, closed.reason],
    [CloseCode.BadRequest, "the message holds more than 10000 values"],
  );
  const nested = `{"i":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  const body = `{"query":${JSON.stringify(confirm)},"variables":${nested}}`;
  check((await (await gateway.post(body)).json()) as Answer, "100,000 nested lists");
  assert.deepEqual(gateway.seen(), []);
});

const documents: Record<string, string> = {
  "names that are nowhere": `{ ${filled("paymen ", 13_000)} }`,
  "the same field, again and again": `{ rateLimit { ${filled("limit ", 11_000)} } }`,
  "fields that are nowhere, each with a text": `{ ${filled('a(b: " cannot represent ") ', 7_000)} }`,
  "a text of one phrase for a number": `{ payment(externalId: "e") {
    events(first: "${filled(" cannot represent ", 60_000)}") { cursor } } }`,
  "a name as long as the document": `{ ${"p".repeat(65_000)} }`,
  "a syntax error behind one phrase": `{ payment(externalId: "${filled(", found ", 60_000)}") ]`,
};
test("documents that are costly to read are answered, with few and short messages", async (t) => {
  const gateway = await serve(t, {}, { production: false });
  for (const [what, text] of Object.entries(documents)) {
    const { data, errors } = await gateway.run(text);
    assert.ok(data || errors.length <= 11, `${what}: ${errors?.length} faults`);
    for (const { message } of errors ?? []) assert.ok(message.length <= 1_000, what);
  }
});

test("five aliases within introspection are answered, a sixth is refused, also in a fragment", async (t) => {
  const gateway = await serve(t, {}, { production: false });
  const aliases = (count: number, field = "name") =>
    Array.from({ length: count }, (_, n) => `a${n}: ${field}`).join(" ");
  const whole = "__schema { types { name fields { name type { name } args { name } } } }";
  const { data } = await gateway.run(`{ ${aliases(5, whole)} }`);
  assert.ok(data.a4.types.length > 40);
  for (const text of [
    `{ __schema { types { ${aliases(6)} } } }`,
    `{ __schema { types { ...T } } } fragment T on __Type { ${aliases(6)} }`,
    `{ ${aliases(6, '__type(name: "Payment") { name }')} }`,
  ]) {
    const { errors } = await gateway.run(text);
    assert.equal(errors[0].extensions.code, "OPERATION_TOO_COMPLEX", text);
  }
});
