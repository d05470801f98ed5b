import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Event, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentMethodSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import type { Entry, EventLog } from "../../src/ledger/log.ts";
import { type Report, reportTo } from "../../src/report.ts";
import { deriveKeyring, type Keyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { payment, type Told, take } from "../ledger/entries.ts";
import { letter, lettersOf } from "../ledger/letters.ts";
import { openSeal } from "../stores/sqlite/open-seal.ts";

export interface LedgerKeys {
  readonly keyringOf: () => Pick<Keyring, "events" | "deadLetters">;
  readonly report: Report;
}

/** A store of the account `shop`, which one process after another opens. */
export interface SealedStore {
  open(keys: LedgerKeys): Promise<{ readonly log: EventLog; close(): Promise<void> }>;
  /** All that it holds, as text. */
  held(): Promise<string>;
}

const token = "card-token-7f31";
const number = "4716108999716531";

/** A payment whose event has the token of its card. */
export function paidByCard(told: Told = {}): Entry {
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

const unread = (id: string) =>
  letter(id, Buffer.from(`{"card": {"number": "${number}"}, ${id}`).toString("base64"));

/** Each secret, in plain and in base64 wherever it begins. */
const forms = [token, number].flatMap((secret) => [
  secret,
  ...["", "x", "xy"].map((before) =>
    Buffer.from(before + secret)
      .toString("base64")
      .slice(4, 20),
  ),
]);

/** Tests that a store keeps secrets encrypted, and who can read them. */
export function testSealed(name: string, make: (t: TestContext) => Promise<SealedStore>): void {
  describe(`secrets that are encrypted in ${name}`, { timeout: 60_000 }, () => {
    /** Opens the store with these passwords, or with sealing off; `locked` is what it reported. */
    async function open({ open }: SealedStore, ...passwords: string[]) {
      const locked: string[] = [];
      const keyring =
        passwords.length === 0
          ? { events: openSeal, deadLetters: openSeal }
          : await deriveKeyring(
              "shop",
              passwords.map((password) => new Secret(password)),
            );
      const { log, close } = await open({
        keyringOf: () => keyring,
        report: reportTo({ locked: ({ account, what }) => void locked.push(`${account} ${what}`) }),
      });
      const { signal } = new AbortController();
      const tokens = async (count: number) => {
        const events = await log.read("shop", { kinds: [] }, "earliest", { signal });
        return (await take(events, count)).map(tokenOf);
      };
      return { log, close, locked, tokens };
    }

    for (const [what, isOff] of [
      ["neither card tokens nor what could not be read is stored in plain", false],
      ["the search for them finds them with sealing off", true],
    ] as const) {
      it(what, async (t) => {
        const store = await make(t);
        const { log, close } = await open(store, ...(isOff ? [] : ["password"]));
        await log.append("shop", paidByCard({ status: "pending" }));
        await log.append("shop", paidByCard());
        await log.append("shop", paidByCard({ operation: "refund" }));
        await log.letters.addDeadLetter("shop", unread("l-1"));
        await close();
        const text = await store.held();
        assert.match(text, /41\*\*11/, "the rest stays readable");
        const shown = forms.filter((form) => text.includes(form));
        assert.equal(shown.length > 0, isOff, `${shown}`);
      });
    }

    it("are in stored and live events, the current state and dead letters for every reader", async (t) => {
      const { log, close, locked, tokens } = await open(await make(t), "password");
      const { signal } = new AbortController();
      const live = await log.read("shop", { kinds: [] }, "latest", { signal });
      await log.append("shop", paidByCard());
      const snapshot = await log.snapshot("shop", EventKind.PAYMENT, "order-1");
      const [stored] = await log.history("shop", EventKind.PAYMENT, "order-1", 1);
      for (const event of [...(await take(live, 1)), snapshot?.operations[0]?.event, stored]) {
        assert.equal(tokenOf(event), token);
      }
      assert.deepEqual(await tokens(1), [token]);
      await log.letters.addDeadLetter("shop", unread("l-1"));
      assert.deepEqual(await lettersOf(log, "shop"), [unread("l-1")]);
      assert.deepEqual(locked, []);
      await close();
    });

    it("stay readable after a password change; dropping the old password loses only the secrets", async (t) => {
      const store = await make(t);
      const before = await open(store, "old");
      await before.log.append("shop", paidByCard());
      await before.log.letters.addDeadLetter("shop", unread("l-1"));
      await before.close();

      const during = await open(store, "new", "old");
      await during.log.append("shop", paidByCard({ externalId: "order-2", paymentId: "p-2" }));
      await during.log.letters.addDeadLetter("shop", unread("l-2"));
      assert.deepEqual(await during.tokens(2), [token, token]);
      assert.deepEqual(await lettersOf(during.log, "shop"), [unread("l-1"), unread("l-2")]);
      assert.deepEqual(during.locked, []);
      await during.close();

      const dropped = await open(store, "new");
      assert.deepEqual(await dropped.tokens(2), [undefined, token]);
      assert.deepEqual(dropped.locked, ["shop event"]);
      const state = await dropped.log.snapshot("shop", EventKind.PAYMENT, "order-1");
      assert.equal(state?.operations[0]?.status, "success");
      assert.equal(tokenOf(state?.operations[0]?.event), undefined);
      const { body: _, ...locked } = unread("l-1");
      assert.deepEqual(await lettersOf(dropped.log, "shop"), [locked, unread("l-2")]);
      assert.deepEqual(dropped.locked, ["shop event", "shop event", "shop dead_letter"]);
      await dropped.close();

      const old = await open(store, "old");
      assert.deepEqual(await old.tokens(2), [token, undefined], "what was written since is locked");
      await old.close();
    });
  });
}
