import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { freePorts, killSpawned, spawnCli } from "../gateway/spawn.ts";
import type { Answer } from "../graphql/serve.ts";
import { keepsAnswering as healthzAnswers } from "./health.ts";

/** Limits of what one request may cost, by each transport, at a gateway in another process. */

let graphqlUrl: string;
let adminUrl: string;
let watchToken: string;

/** Replaces a gateway that failed the check, so that the next test starts with a new one. */
async function keepsAnswering(attack: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  if (!adminUrl) await start();
  try {
    await healthzAnswers(adminUrl, attack);
  } catch (error) {
    killSpawned();
    adminUrl = "";
    throw error;
  }
}

async function start(): Promise<void> {
  const gateway = spawnCli(["serve"], {
    ...freePorts,
    LOG_LEVEL: "error",
    WATCH_TOKEN_SECRET: "w".repeat(32),
  });
  const { public: publicUrl = "", admin = "" } = await gateway.ready;
  graphqlUrl = `${publicUrl}/graphql`;
  adminUrl = admin;
  const { data } = await post({
    query: `mutation { createWatchToken(input: {externalId: "e", kind: PAYMENT, ttlSeconds: 600}) {
      ... on WatchToken { token } } }`,
  });
  watchToken = data.createWatchToken.token;
}

before(start);
after(killSpawned);

interface Asked {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
}

type Ask = (asked: Asked, signal?: AbortSignal) => Promise<Answer>;

const postText = async (
  body: string,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const response = await fetch(graphqlUrl, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
    ...(signal && { signal }),
  });
  return response.json();
};

const post = (asked: Asked, signal?: AbortSignal, headers?: Record<string, string>) =>
  postText(JSON.stringify(asked), signal, headers);

const get = async (
  { query, variables }: Asked,
  signal?: AbortSignal,
  more: Record<string, string> = {},
): Promise<Answer> => {
  const params = new URLSearchParams({ query, ...more });
  if (variables) params.set("variables", JSON.stringify(variables));
  const response = await fetch(`${graphqlUrl}?${params}`, {
    headers: { accept: "application/json" },
    ...(signal && { signal }),
  });
  return response.json();
};

const bySocket: Ask = async (asked, signal) => {
  const client = createClient({
    url: graphqlUrl.replace("http", "ws"),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  signal?.addEventListener("abort", () => client.terminate());
  try {
    return (await client.iterate({ ...asked }).next()).value;
  } catch (errors) {
    return { errors };
  } finally {
    await client.dispose();
  }
};

const ways: Readonly<Record<string, Ask>> = { POST: post, GET: get, WebSocket: bySocket };

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

for (const [way, ask] of Object.entries(ways)) {
  test(`${way}: fragments that double sixty times are visited once each`, async () => {
    await keepsAnswering(async (signal) => {
      const { data, errors } = await ask({ query }, signal);
      assert.equal(errors, undefined);
      assert.deepEqual(data, { __typename: "Query" });
    });
  });
}

test("fragments that double sixty times are visited once each with a watch token", async () => {
  await keepsAnswering(async (signal) => {
    const { data, errors } = await get({ query }, signal, { watch_token: watchToken });
    assert.equal(errors, undefined);
    assert.deepEqual(data, { __typename: "Query" });
  });
});

test("fragments that double sixty times are visited once each with an Idempotency-Key", async () => {
  await keepsAnswering(async (signal) => {
    const { errors } = await post({ query: mutation }, signal, { "idempotency-key": "k" });
    assert.equal(errors[0].extensions.code, "OPERATION_TOO_COMPLEX", "by its cost");
  });
  const one = mutation.replace(resend, "__typename");
  await keepsAnswering(async (signal) => {
    const { data } = await post({ query: one }, signal, { "idempotency-key": "k" });
    assert.deepEqual(data, { __typename: "Mutation" });
  });
  const two = mutation.replace(resend, "a: __typename b: __typename");
  await keepsAnswering(async (signal) => {
    const { errors } = await post({ query: two }, signal, { "idempotency-key": "k" });
    assert.match(errors[0].message, /^Idempotency-Key goes with one mutation/);
  });
});

const confirm = "mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }";
const phrases = [
  " cannot represent ",
  " cannot represent :",
  ' at "i',
  "; found: ",
  " does not exist in ",
  " Did you mean ",
  '"',
  "\\",
];
/** Repeats the phrase up to this size. */
const filled = (phrase: string, bytes: number) => phrase.repeat(Math.floor(bytes / phrase.length));
const unknownKeys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, 1]));

const refusedVariables: Record<string, Asked> = {
  "90,000 unknown keys": { query: confirm, variables: { i: unknownKeys(90_000) } },
  "as many unknown keys as values may be": {
    query: confirm,
    variables: { i: unknownKeys(9_999) },
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
};
for (const phrase of phrases) {
  const told = JSON.stringify(phrase);
  refusedVariables[`1 MB of ${told} for a number`] = {
    query: 'query($n: Int) { payment(externalId: "e") { events(first: $n) { cursor } } }',
    variables: { n: filled(phrase, 500_000) },
  };
  refusedVariables[`1 MB of ${told} for an enum`] = {
    query: "mutation($i: ResendCallbackInput!) { resendCallback(input: $i) { __typename } }",
    variables: { i: { externalId: "e", operation: filled(phrase, 500_000) } },
  };
}
refusedVariables["1 MB for an object"] = {
  query: confirm,
  variables: { i: filled(" cannot represent ", 900_000) },
};

/** By WebSocket, whose messages have a coder of their own, the two that cost most. */
const bySocketToo = ["90,000 unknown keys", "1 MB for an object"];

for (const [what, asked] of Object.entries(refusedVariables)) {
  for (const way of bySocketToo.includes(what) ? ["POST", "WebSocket"] : ["POST"]) {
    test(`${way}: ${what} is refused with a short message`, async () => {
      await keepsAnswering(async (signal) => {
        const { errors } = await (ways[way] as Ask)(asked, signal);
        assert.ok(errors.length > 0 && errors.length <= 11, `${errors.length} faults`);
        for (const { extensions, message } of errors) {
          assert.match(extensions.code, /^(BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)$/);
          assert.ok(message.length < 1_100);
          assert.doesNotMatch(message, /Did you mean/);
        }
      });
    });
  }
}

test("100,000 nested lists are refused", async () => {
  const variables = `{"i":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  const body = `{"query":${JSON.stringify(confirm)},"variables":${variables}}`;
  await keepsAnswering(async (signal) => {
    const { errors } = await postText(body, signal);
    assert.equal(errors[0].extensions.code, "BAD_USER_INPUT");
  });
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
for (const [what, text] of Object.entries(documents)) {
  test(`a document of ${what} is answered in time`, async () => {
    await keepsAnswering(async (signal) => {
      const { data, errors } = await post({ query: text }, signal);
      assert.ok(data || errors.length <= 11, `${errors?.length} faults`);
      for (const { message } of errors ?? []) assert.ok(message.length <= 1_000);
    });
  });
}

const type = "name fields { name type { name } args { name type { name } } }";
const introspections: Record<string, string> = {
  "the whole schema, once": `{ __schema { types { ${type} } } }`,
  "five times the whole schema": `{ ${[1, 2, 3, 4, 5].map((n) => `a${n}: __schema { types { ${type} } }`).join(" ")} }`,
  "aliases at each depth": `{ __schema { types { a: fields { name type { ...T } } b: fields { name type { ...T } }
    fields { name type { ...T } } } } }
    fragment T on __Type { a: fields { name } b: fields { name } c: fields { name } }`,
};
for (const [what, text] of Object.entries(introspections)) {
  test(`introspection: ${what} is answered in time`, async () => {
    await keepsAnswering(async (signal) => {
      const { data, errors } = await post({ query: text }, signal);
      assert.equal(errors, undefined);
      assert.ok(data.__schema ?? data.a1);
    });
  });
}

test("a sixth alias within introspection is refused, also in a fragment", async () => {
  const aliases = Array.from({ length: 6 }, (_, n) => `a${n}: name`).join(" ");
  for (const text of [
    `{ __schema { types { ${aliases} } } }`,
    `{ __schema { types { ...T } } } fragment T on __Type { ${aliases} }`,
    `{ ${aliases.replaceAll("name", '__type(name: "Payment") { name }')} }`,
  ]) {
    const { errors } = await post({ query: text });
    assert.equal(errors[0].extensions.code, "OPERATION_TOO_COMPLEX", text);
  }
});
