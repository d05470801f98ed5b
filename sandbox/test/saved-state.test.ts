import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { Secret } from "../../src/secrets/secret.ts";
import { directory } from "../../test/stores/sqlite/directories.ts";
import { until } from "../../test/until.ts";
import { valuesOf } from "../../test/values-of.ts";
import { demoOptions, demoSubscriptions } from "../ledger/demo-data.ts";
import type { SandboxOptions } from "../options.ts";
import { startSandbox } from "../server.ts";
import { cardPayment, newPayment, paths, type Rig, startReceiver, startRig } from "./start.ts";

/** Passes the check of card numbers, and has no magic value. */
const unlisted = "4242424242424242";
const challenged = "4000000000003014";
/** No step that takes time happens before the end of a test. */
const slow = { callbackMs: 3_600_000, settleMs: 3_600_000, payoutMs: 3_600_000 };
/** Where the pages are, whatever the port. */
const publicUrl = "http://sandbox.example";

function stateFile(t: TestContext): string {
  return join(directory(t), "sandbox.sqlite");
}

/** Starts with a copy of what is on the disk now: so a process finds it whose predecessor was killed. */
async function afterCrash(
  t: TestContext,
  file: string,
  options: Partial<SandboxOptions> = {},
): Promise<Rig> {
  const copy = stateFile(t);
  for (const end of ["", "-wal"]) copyFileSync(file + end, copy + end);
  return await startRig(t, { stateFile: copy, publicUrl, ...options });
}

test("look-ups give after a crash what they gave before it", async (t) => {
  const file = stateFile(t);
  const before = await startRig(t, { stateFile: file, publicUrl });
  const made = await before.pay(
    newPayment(
      { amount: 10.5, description: "Two books", payload: '{"cart":7}' },
      { number: unlisted, exp_year: 31 },
    ),
  );
  const paid = made.body.details;
  await before.call("POST", `/sandbox/payments/${paid.payment_id}/refund`, { amount: 2.5 });
  await before.call("POST", paths.requestPayout, payout("payout-1"));
  await before.sandbox.idle();
  await before.call("DELETE", `${paths.subscriptions}/${demoSubscriptions.active}`);
  const removed = { option_id: demoOptions.unconfirmed, type: "card" };
  await before.call("DELETE", `${paths.wallet}?external_id=demo-customer`, removed);
  await before.call("POST", "/__sandbox/clock", { advance_ms: 86_400_000 });

  const lookups = async ({ call, get, pay }: Rig) => {
    const asked = [
      `${paths.operation}?external_id=order-1&operation_id=${paid.operation_id}`,
      `${paths.payoutInfo}?external_id=payout-1`,
      `${paths.walletFind}?external_id=demo-customer`,
      `${paths.walletFind}?external_id=customer-1`,
      "/sandbox/ledger",
    ];
    const answers = await Promise.all(asked.map((path) => get(path)));
    const inactive = await call("DELETE", `${paths.subscriptions}/${demoSubscriptions.active}`);
    const again = await pay(newPayment());
    return [...answers, inactive, again].map(({ status, text }) => ({
      status,
      // An error has an id of its own each time.
      text: text.replace(/,"error_id":"[^"]*"/, ""),
    }));
  };
  const after = await afterCrash(t, file);
  const known = await lookups(before);
  assert.deepEqual(await lookups(after), known);
  assert.deepEqual(valuesOf(known, "status"), [200, 200, 200, 200, 200, 409, 409]);
  assert.match((await after.get("/__sandbox/clock")).body.now, /T/);
  assert.ok(after.sandbox.clock.now() > Date.now() + 86_000_000);

  const { token } = made.body.payment_method.cc_token;
  const byToken = await after.pay(
    newPayment({
      external_id: "order-2",
      payment_method: { type: "cc_token", cc_token: { token } },
    }),
  );
  assert.equal(byToken.body.is_success, true, byToken.text);
  assert.equal(byToken.body.payment_method.cc_token.mask, "424242******4242");
});

test("a 3DS page and a checkout page work after a crash", async (t) => {
  const file = stateFile(t);
  const receiver = await startReceiver(t);
  const before = await startRig(t, { stateFile: file, publicUrl });
  const pay = async (payment: object) => {
    const { body, text } = await before.call("POST", paths.new, payment);
    assert.ok(body.action, text);
    return new URL(body.action.value).pathname;
  };
  const callback_url = receiver.url;
  const challenge = await pay(cardPayment(challenged, { callback_url }));
  const checkout = await pay({
    ...{ amount: 10.63, currency: "UAH", mode: "hosted", external_id: "order-2" },
    ...{ payment_method: { type: "cc_number" }, callback_url },
  });

  const after = await afterCrash(t, file);
  assert.match(await (await fetch(after.sandbox.url + challenge)).text(), /400000\*{6}3014/);
  const press = (path: string, form: Record<string, string>) =>
    fetch(after.sandbox.url + path, { method: "POST", body: new URLSearchParams(form) });
  await press(challenge, { decision: "approve" });
  const approved = (await receiver.next()).body;
  assert.deepEqual([approved.external_id, approved.details.status], ["order-1", "success"]);
  await press(checkout, { number: unlisted, expiry: "12/31", cvv: "123" });
  const declined = (await receiver.next()).body;
  assert.deepEqual([declined.external_id, declined.details.status_code], ["order-2", "wrong_cvv"]);
});

test("what was scheduled goes on after a crash: settlements, payouts, receipts", async (t) => {
  const file = stateFile(t);
  const receiver = await startReceiver(t);
  const before = await startRig(t, { stateFile: file, publicUrl, delays: slow });
  const pay = (external_id: string, number: string) =>
    before.call(
      "POST",
      paths.new,
      cardPayment(number, { external_id, callback_url: receiver.url }),
    );
  await pay("delayed", "4000000000000655");
  await pay("init", "4000000000000788");
  await pay("receipt", "4000000000000804");
  await before.call("POST", paths.requestPayout, payout("payout-1", receiver.url));
  assert.equal(receiver.received.length, 0);

  const after = await afterCrash(t, file);
  await after.sandbox.idle();
  const ends = Map.groupBy(receiver.received, ({ body }) => body.external_id as string);
  const statuses = (id: string) =>
    ends.get(id)?.map(({ body }) => body.details?.status ?? body.status);
  assert.deepEqual(statuses("delayed"), ["success"]);
  assert.deepEqual(statuses("init"), ["pending", "success"]);
  assert.deepEqual(statuses("payout-1"), ["success"]);
  assert.deepEqual(
    ends.get("receipt")?.map(({ body }) => body.details.fiscalization.status),
    ["Pending", "Success"],
  );
});

test("a callback that was not accepted is sent on after a crash, and once accepted not again", async (t) => {
  const file = stateFile(t);
  const receiver = await startReceiver(t, 500);
  const callbackRetry = { firstPauseMs: 3_600_000, maxPauseMs: 3_600_000 };
  const before = await startRig(t, { stateFile: file, publicUrl, callbackRetry });
  await before.pay(newPayment({ callback_url: receiver.url }));
  const first = await receiver.next();
  // Its attempt is saved in the turn after the answer: wait until the log has it.
  await until(() => before.records.some(({ event }) => event === "callback"));
  const after = await afterCrash(t, file);
  const second = await receiver.next();
  assert.deepEqual(second.bytes, first.bytes);
  await after.sandbox.idle();
  const attempts = after.records.flatMap((one) => (one.event === "callback" ? [one.attempt] : []));
  assert.deepEqual(attempts, [2]);

  const copied = after.sandbox;
  await copied.close();
  await before.sandbox.close();
  assert.equal(receiver.received.length, 2);
});

test("a stop keeps the state, and what was forgotten is not in the file", async (t) => {
  const file = stateFile(t);
  const first = await startRig(t, { stateFile: file, maxRecords: 2 });
  for (const external_id of ["order-1", "order-2", "order-3"]) {
    await first.pay(newPayment({ external_id }));
  }
  await first.sandbox.close();
  const second = await startRig(t, { stateFile: file });
  assert.deepEqual(valuesOf(second.sandbox.ledger().payments, "external_id"), [
    "order-2",
    "order-3",
  ]);
});

test("no card number is in the file, nor in a free text; the file is for its owner alone", async (t) => {
  const file = stateFile(t);
  const { call, sandbox, pay } = await startRig(t, { stateFile: file, delays: slow });
  const receiver = await startReceiver(t);
  const texts = {
    ...{ description: "paid with 4242 4242 4242 4242", payload: `{"pan":"${unlisted}"}` },
    customer: { external_id: "customer-1", first_name: unlisted },
  };
  const payment = { ...texts, callback_url: receiver.url };
  await pay(newPayment(payment, { number: unlisted }));
  await pay(cardPayment("4000000000000614", { external_id: "order-2" }));
  const wallet = { ...newPayment({ external_id: "order-3" }).payment_method, save_to_wallet: true };
  await pay(newPayment({ external_id: "order-3", payment_method: wallet }));
  await call("POST", paths.requestPayout, payout("payout-1", receiver.url, unlisted));
  const written = () =>
    readdirSync(dirname(file))
      .map((name) => readFileSync(join(dirname(file), name), "latin1"))
      .join("");
  const found = () =>
    written().match(/4242[ -]?4242[ -]?4242[ -]?4242|4000000000000614|4111111111111111/g);
  assert.equal(found(), null);
  assert.match(written(), /order-1/, "the control: it is there");
  assert.match(written(), /paid with 4242 42\*\* \*\*\*\* 4242/);
  await sandbox.close();
  assert.equal(found(), null);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("what could not be written is written with the next change", async (t) => {
  const file = stateFile(t);
  const before = await startRig(t, { stateFile: file });
  const other = new DatabaseSync(file);
  t.after(() => other.close());
  other.exec("BEGIN IMMEDIATE");
  const paid = await before.pay(newPayment());
  assert.equal(paid.status, 200);
  assert.ok(before.records.some(({ event }) => event === "internal_error"));
  other.exec("ROLLBACK");
  await before.pay(newPayment({ external_id: "order-2" }));
  const after = await afterCrash(t, file);
  assert.deepEqual(valuesOf(after.sandbox.ledger().payments, "external_id"), [
    "order-1",
    "order-2",
  ]);
});

test("a file that is no database, or of another layout, is refused and left as it is", async (t) => {
  const file = stateFile(t);
  writeFileSync(file, "not a database, but long enough to be taken for the head of one");
  await assert.rejects(startRig(t, { stateFile: file }), {
    name: "SavedStateError",
    message: /sandbox\.sqlite cannot be used \(file is not a database\): delete it/,
  });
  assert.match(readFileSync(file, "utf8"), /^not a database/);

  rmSync(file);
  const later = new DatabaseSync(file);
  later.exec("PRAGMA user_version = 99");
  later.close();
  await assert.rejects(startRig(t, { stateFile: file }), {
    message: /its layout is 99, not 1\): delete it/,
  });
});

test("a file with another table or a damaged record is refused, and nothing stays open", async (t) => {
  const file = stateFile(t);
  const options = {
    ...{ host: "127.0.0.1", port: 0, login: "shop", password: new Secret("password") },
    stateFile: file,
  };
  await (await startSandbox(options)).close();
  const servers = () =>
    process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length;
  const open = servers();
  const record = (value: string) => `DELETE FROM saved;
    INSERT INTO saved (kind, key, value) VALUES ('payment', 'order-1', '${value}')`;
  for (const [damage, why] of [
    [record('{"order-1'), "it has a damaged record"],
    [record('{"order":1}'), "it has a damaged record"],
    ["DROP TABLE saved; CREATE TABLE saved (other TEXT)", "no such column: value"],
  ] as const) {
    const database = new DatabaseSync(file);
    database.exec(damage);
    database.close();
    await assert.rejects(startSandbox(options), {
      name: "SavedStateError",
      message: `the sandbox's ${file} cannot be used (${why}): delete it, and the sandbox begins anew`,
    });
    await until(() => servers() <= open, "no listener stays open");
    assert.ok(!existsSync(`${file}-wal`), "the file is closed");
  }
});

function payout(external_id: string, callback_url?: string, number?: string) {
  return {
    order: {
      ...{ external_id, original_amount: "10.10", currency: "UAH", description: "a prize" },
      ...(callback_url && { callback_url }),
    },
    payer: { entity_id: "entity-1" },
    payout_type: "card",
    recipient: {
      card: {
        ...{ first_name: "Anna", last_name: "Koval" },
        card_data: { number: number ?? "4111111111111111" },
      },
    },
  };
}
