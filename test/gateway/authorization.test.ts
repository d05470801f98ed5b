import assert from "node:assert/strict";
import { test } from "node:test";
import type { GraphQLObjectType } from "graphql";
import type { Gateway } from "../../src/app/gateway.ts";
import { scopes } from "../../src/auth/caller.ts";
import { createWatchTokens } from "../../src/auth/watch-token.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { accessEnv, newKey, scratch, signingKey, signToken } from "../auth/issuer.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { callRpc, type Outcome, type Shown } from "./access.ts";
import { paymentRequest, payoutRequest } from "./callers.ts";
import {
  foreign,
  graphqlOperations,
  type Objects,
  type Operation,
  own,
  rpcOperations,
} from "./operations.ts";

const files = scratch();
const signing = await signingKey("es");
const watchSecret = "w".repeat(32);
const watchTokens = createWatchTokens(new Secret(watchSecret));
const operations = [...rpcOperations, ...graphqlOperations];

const keyEntries = [
  ...scopes.map((scope) => ({ name: scope, key: newKey(), scopes: [scope] })),
  { name: "all", key: newKey(), scopes },
  { name: "none", key: newKey(), scopes: [] },
];
const env = {
  ...accessEnv(files, keyEntries, signing),
  WATCH_TOKEN_SECRET: watchSecret,
  RATE_LIMIT_INITIAL: "100000",
};

interface TestCaller {
  readonly name: string;
  readonly headers: Shown;
  /** What it may do does not depend on the objects: only the keys `all` and `none` try foreign ones. */
  readonly isUnbound?: boolean;
  /** The outcome that the contract demands for this caller and these objects. */
  expected(operation: Operation, objects: Objects): Outcome;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const unless = (allowed: boolean): Outcome => (allowed ? "allowed" : "PERMISSION_DENIED");

function service(name: string, token: string, held: readonly string[]): TestCaller {
  return {
    name,
    headers: bearer(token),
    isUnbound: !/^key (all|none)$/.test(name),
    expected: ({ scope }) => unless(scope === undefined || held.includes(scope)),
  };
}

async function customer(id: string): Promise<TestCaller> {
  const theirs = ["wallet:read", "wallet:write", "subscriptions:write"];
  const claims = { customer_external_id: id, scope: scopes.join(" ") };
  return {
    name: `customer ${id}`,
    headers: bearer(await signToken(signing, claims)),
    expected: ({ scope = "" }, objects) =>
      unless(theirs.includes(scope) && objects.customer === id),
  };
}

async function watcher(kind: "payment" | "payout", externalId: string): Promise<TestCaller> {
  const token = await watchTokens.issue({
    account: "default",
    kind: kind === "payment" ? EventKind.PAYMENT : EventKind.PAYOUT,
    externalId,
    expiresAtMs: Date.now() + 600_000,
  });
  return {
    name: `watch token for ${externalId}`,
    headers: bearer(token),
    expected: ({ watches }, objects) => unless(watches === kind && objects[kind] === externalId),
  };
}

function stranger(name: string, headers: Shown): TestCaller {
  return { name, headers, isUnbound: true, expected: () => "UNAUTHENTICATED" };
}

const all = keyEntries.find(({ name }) => name === "all")?.key ?? "";
const callers: readonly TestCaller[] = [
  stranger("anonymous", {}),
  stranger("wrong key", bearer(newKey())),
  stranger("a JWT of another issuer", bearer(await signToken(await signingKey("es")))),
  ...keyEntries.map(({ name, key, scopes }) => service(`key ${name}`, key, scopes)),
  service("JWT of a service", await signToken(signing, { scope: scopes.join(" ") }), scopes),
  service("JWT without scopes", await signToken(signing), []),
  await customer(own.customer),
  await customer(foreign.customer),
  await watcher("payment", own.payment),
  await watcher("payment", foreign.payment),
  await watcher("payout", own.payout),
  // A token for a payout, with the id of a payment.
  await watcher("payout", own.payment),
];

/** A gateway that has the own and the foreign objects. */
async function start(env: Record<string, string>): Promise<Gateway> {
  const gateway = await startTestGateway(env, { rateLimit: 100_000 });
  for (const { payment, payout } of [own, foreign]) {
    const { createPayment } = PaymentService.method;
    const { requestPayout } = PayoutService.method;
    await callRpc(gateway, createPayment, paymentRequest(payment), bearer(all));
    await callRpc(gateway, requestPayout, payoutRequest(payout), bearer(all));
  }
  return gateway;
}
const guarded = ofSuite(() => start(env));
const open = ofSuite(() => start({ ...env, AUTH_MODE: "none" }));

/** Runs every operation × own and foreign objects as one caller; returns unexpected outcomes. */
async function mistakes(gateway: Gateway, caller: TestCaller): Promise<string[]> {
  const wrong: string[] = [];
  for (const operation of operations) {
    for (const [which, objects] of Object.entries(caller.isUnbound ? { own } : { own, foreign })) {
      const expected = caller.expected(operation, objects);
      const outcome = await operation.run(gateway, caller.headers, objects);
      if (outcome !== expected) {
        wrong.push(`${operation.name} ${which}: ${outcome}, not ${expected}`);
      }
    }
  }
  return wrong;
}

test("the matrix has every method and every root field", () => {
  const methods = services.flatMap((service) =>
    service.methods.map((method) => `${service.name}.${method.name}`),
  );
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const fields = roots
    .filter((type): type is GraphQLObjectType => type instanceof Object)
    .flatMap((type) => Object.keys(type.getFields()).map((field) => `${type.name}.${field}`));
  assert.deepEqual(operations.map(({ name }) => name).sort(), [...methods, ...fields].sort());
});

for (const caller of callers) {
  test(`${caller.name} may do what the contract says and nothing else`, async () => {
    assert.deepEqual(await mistakes(guarded, caller), []);
  });
}

test("control: without authentication the matrix finds every operation open", async () => {
  const strangers = ["anonymous", "wrong key", "a JWT of another issuer"];
  const asked = [...strangers, "key none", `customer ${own.customer}`];
  const of = new Map<string, string[]>();
  for (const caller of callers.filter(({ name }) => asked.includes(name))) {
    of.set(caller.name, await mistakes(open, caller));
  }
  assert.equal(of.size, asked.length);
  for (const name of strangers) assert.equal(of.get(name)?.length, operations.length, name);
  const scoped = operations.filter(({ scope }) => scope !== undefined).length * 2;
  assert.equal(of.get("key none")?.length, scoped);
  const customers = of.get(`customer ${own.customer}`)?.join("\n") ?? "";
  assert.match(customers, /FindWalletItems foreign: allowed/);
  assert.match(customers, /Query.walletItems foreign: allowed/);
  assert.doesNotMatch(customers, /FindWalletItems own/);
});
