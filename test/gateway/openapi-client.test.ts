import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Gateway } from "../../src/app/gateway.ts";
import { card, payment, schemaOf } from "../rpc/openapi-document.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";

/** What the generator makes of openapi.json, as far as it is used here. */
interface Client {
  readonly OpenAPI: { BASE: string };
  readonly PaymentService: Readonly<
    Record<"createPayment" | "getPayment", (...args: unknown[]) => Promise<unknown>>
  >;
}

const folder = directory({ after });
let gateway: Gateway;
let client: Client;

before(async () => {
  const generator = "node_modules/openapi-typescript-codegen/bin/index.js";
  const options = ["--client", "fetch", "--useUnionTypes", "--output", join(folder, "source")];
  const made = spawnSync("node", [generator, "--input", "openapi.json", ...options], {
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.equal(made.status, 0, made.stderr);
  const outfile = join(folder, "client.mjs");
  const entryPoints = [join(folder, "source/index.ts")];
  await build({ entryPoints, outfile, bundle: true, format: "esm", platform: "node" });
  client = await import(pathToFileURL(outfile).href);
  gateway = await startTestGateway();
  client.OpenAPI.BASE = gateway.rpcUrl;
});

after(() => gateway?.stop());

test("a client generated from openapi.json makes a payment, and every answer is as described", async () => {
  const { createPayment, getPayment } = client.PaymentService;
  const key = [undefined, undefined, 30_000, "key-1"] as const;
  const created = await createPayment(payment, ...key);
  assertFits("CreatePaymentResponse", created);
  const { state, payment: made } = created as { state: string; payment: { externalId: string } };
  assert.deepEqual([state, made.externalId], ["PAYMENT_STATE_PAID", "order-1"]);

  const read = await getPayment({ externalId: "order-1" });
  assertFits("GetPaymentResponse", read);
  assert.equal((read as { state: string }).state, "PAYMENT_STATE_PAID");
});

test("a client generated from openapi.json is told what it did wrong, as described", async () => {
  const { createPayment } = client.PaymentService;
  const wrong = { ...payment, paymentMethod: { cc: { ...card, number: "4111-1" } } };
  const error = await createPayment(wrong).then(
    () => assert.fail("it was accepted"),
    (thrown: { status: number; body: { code: string; details: { type: string }[] } }) => thrown,
  );
  assertFits("Error", error.body);
  assert.deepEqual([error.status, error.body.code], [400, "invalid_argument"]);
  const types = error.body.details.map(({ type }) => type);
  assert.ok(
    types.includes("google.rpc.BadRequest") && types.includes("google.rpc.LocalizedMessage"),
  );
});

function assertFits(name: string, message: unknown): void {
  const fits = schemaOf(name);
  assert.ok(fits(message), JSON.stringify(fits.errors));
}
