import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Event, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentMethodSchema } from "../../../src/gen/payments/v1/payment_pb.ts";
import type { Entry } from "../../../src/ledger/log.ts";
import type { RedisLedgerOptions } from "../../../src/ledger/redis.ts";
import { reportTo } from "../../../src/report.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import type { Seal } from "../../../src/secrets/seal.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { dumpRedis } from "../../redis/dump.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { payment, type Told } from "../entries.ts";
import { lettersOf } from "../letters.ts";
import { type Replica, reader, replica } from "./rig.ts";

const token = "card-token-7f31";
const number = "4716108999716531";

/** A payment whose event has the token of its card. */
function paid(told: Told): Entry {
  const entry = payment({ status: "success", ...told });
  const { resource } = entry.event;
  assert.ok(resource.case === "payment");
  resource.value.paymentMethod = create(PaymentMethodSchema, {
    ccToken: { token, mask: "41**11" },
  });
  return entry;
}

function tokenOf(event: Event | undefined): string | undefined {
  assert.ok(event?.resource.case === "payment");
  assert.equal(event.resource.value.paymentMethod?.ccToken?.mask, "41**11");
  return event.resource.value.paymentMethod.ccToken.token;
}

const letter = (id: string) => ({
  id,
  kind: EventKind.PAYMENT,
  body: Buffer.from(`{"card": {"number": "${number}"}, ${id}`).toString("base64"),
  reason: "the body is not JSON",
  receivedAtMs: 1_700_000_000_000,
});

type KeyringOf = RedisLedgerOptions["keyringOf"];

async function keyringOf(...passwords: string[]): Promise<KeyringOf> {
  const secrets = passwords.map((password) => new Secret(password));
  const keyring = await deriveKeyring("shop", secrets);
  return () => keyring;
}

const open: Seal = { close: (text) => Buffer.from(text), open: (text) => Buffer.from(text) };
const sealingOff: KeyringOf = () => ({ events: open, deadLetters: open });

describe("secrets that are encrypted in Redis", { skip: withoutRedis, timeout: 60_000 }, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.close());

  /** A log with these keys, and what it reported as locked. */
  async function logWith(t: TestContext, keys: KeyringOf, prefix: string) {
    const locked: string[] = [];
    const one: Replica = await replica(server.url, {
      prefix,
      keyringOf: keys,
      report: reportTo({ locked: ({ account, what }) => void locked.push(`${account} ${what}`) }),
    });
    t.after(() => one.close());
    return { log: one.log, locked };
  }

  async function held(prefix: string): Promise<string> {
    const all = await dumpRedis(server.port);
    const own = [...all].filter(([key]) => key.startsWith(`${prefix}:`));
    assert.ok(own.length > 3, `${own.length} keys`);
    return own.flat().join("\n");
  }

  const forms = [token, number].flatMap((secret) => [
    secret,
    ...["", "x", "xy"].map((before) =>
      Buffer.from(before + secret)
        .toString("base64")
        .slice(4, 20),
    ),
  ]);

  for (const [what, off] of [
    ["neither card tokens nor what could not be read is stored in plain", false],
    ["the search for them finds them with sealing off", true],
  ] as const) {
    it(what, async (t) => {
      const prefix = off ? "off" : "on";
      const { log } = await logWith(t, off ? sealingOff : await keyringOf("password"), prefix);
      await log.append("shop", paid({ status: "pending" }));
      await log.append("shop", paid({}));
      await log.append("shop", paid({ operation: "refund" }));
      await log.letters.addDeadLetter("shop", letter("l-1"));
      const text = await held(prefix);
      assert.match(text, /41\*\*11/, "the rest stays readable");
      const shown = forms.filter((form) => text.includes(form));
      assert.equal(shown.length > 0, off, `${shown}`);
    });
  }

  it("are in stored and live events, the current state and dead letters for every reader", async (t) => {
    const keys = await keyringOf("password");
    const { log, locked } = await logWith(t, keys, "whole");
    const live = await reader(log);
    await log.append("shop", paid({}));
    await live.sees(1);
    await live.stop();
    const snapshot = await log.snapshot("shop", EventKind.PAYMENT, "order-1");
    const [stored] = await log.history("shop", EventKind.PAYMENT, "order-1", 1);
    for (const event of [live.seen[0], snapshot?.states[0]?.event, stored]) {
      assert.equal(tokenOf(event), token);
    }
    await log.letters.addDeadLetter("shop", letter("l-1"));
    assert.deepEqual(await lettersOf(log, "shop"), [letter("l-1")]);
    assert.deepEqual(locked, []);
  });

  it("stay readable after a password change; dropping the old password loses only the secrets", async (t) => {
    const before = await logWith(t, await keyringOf("old"), "rotated");
    await before.log.append("shop", paid({ externalId: "order-1", paymentId: "p-1" }));
    await before.log.letters.addDeadLetter("shop", letter("l-1"));

    const during = await logWith(t, await keyringOf("new", "old"), "rotated");
    await during.log.append("shop", paid({ externalId: "order-2", paymentId: "p-2" }));
    await during.log.letters.addDeadLetter("shop", letter("l-2"));
    const told = async ({ log }: typeof before) => {
      const events = await reader(log, "earliest");
      await events.sees(2);
      await events.stop();
      return events.seen.map(tokenOf);
    };
    assert.deepEqual(await told(during), [token, token]);
    assert.deepEqual(await lettersOf(during.log, "shop"), [letter("l-1"), letter("l-2")]);
    assert.deepEqual(during.locked, []);

    const dropped = await logWith(t, await keyringOf("new"), "rotated");
    assert.deepEqual(await told(dropped), [undefined, token]);
    assert.deepEqual(dropped.locked, ["shop event"]);
    const state = await dropped.log.snapshot("shop", EventKind.PAYMENT, "order-1");
    assert.equal(state?.states[0]?.status, "success");
    assert.equal(tokenOf(state?.states[0]?.event), undefined);
    const { body: _, ...locked } = letter("l-1");
    assert.deepEqual(await lettersOf(dropped.log, "shop"), [locked, letter("l-2")]);
    assert.deepEqual(dropped.locked, ["shop event", "shop event", "shop dead_letter"]);
    // The replica with the old password reads the new replica's event without its secrets, too.
    assert.deepEqual(await told(before), [token, undefined]);
  });
});
