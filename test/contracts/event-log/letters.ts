import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { keptLettersOf, letter, lettersOf } from "../../ledger/letters.ts";
import { hasCode, isFull } from "../../ledger/refusals.ts";
import { account, type LogRig, lettersBound } from "./rig.ts";

/** Dead letters. */
export function testDeadLetters(rig: LogRig): void {
  describe("dead letters", () => {
    it("are kept once per id, in order, until they are removed", async () => {
      assert.deepEqual(await lettersOf(rig.log, account), []);
      await rig.log.letters.addDeadLetter(account, letter("l-1"));
      await rig.log.letters.addDeadLetter(account, letter("l-2"));
      await rig.log.letters.addDeadLetter(account, letter("l-1"));
      assert.deepEqual(await lettersOf(rig.peer, account), [letter("l-1"), letter("l-2")]);
      assert.equal(await rig.peer.letters.countDeadLetters(account), 2);
      assert.equal(await rig.peer.letters.countDeadLetters("other account"), 0);
      assert.equal(await rig.log.letters.removeDeadLetter(account, "l-1"), true);
      assert.equal(await rig.log.letters.removeDeadLetter(account, "l-1"), false);
      assert.deepEqual(await lettersOf(rig.log, account), [letter("l-2")]);
    });

    it("are found by their ids", async () => {
      await rig.log.letters.addDeadLetter(account, letter("l-1"));
      const { place, ...found } = (await rig.peer.letters.deadLetter(account, "l-1")) ?? {
        place: "",
      };
      assert.deepEqual(found, letter("l-1"));
      assert.deepEqual(
        (await keptLettersOf(rig.log, account)).map((listed) => listed.place),
        [place],
      );
      assert.equal(await rig.log.letters.deadLetter(account, "l-2"), undefined);
      assert.equal(await rig.log.letters.deadLetter("other", "l-1"), undefined);
    });

    it("are listed from either end, and after a place, also that of a removed letter", async () => {
      // More than the rig.log reads at a time.
      const all = Array.from({ length: 45 }, (_, i) => letter(`l-${i}`));
      for (const one of all) await rig.log.letters.addDeadLetter(account, one);
      assert.deepEqual(await lettersOf(rig.peer, account), all);
      const newestFirst = true;
      assert.deepEqual(await lettersOf(rig.log, account, { newestFirst }), all.toReversed());

      const kept = await keptLettersOf(rig.log, account);
      const behind = kept[20]?.place;
      await rig.log.letters.removeDeadLetter(account, "l-20");
      await rig.log.letters.removeDeadLetter(account, "l-22");
      const gone = [all[21], ...all.slice(23)];
      assert.deepEqual(await lettersOf(rig.peer, account, { behind }), gone);
      const before = all.slice(0, 20).reverse();
      assert.deepEqual(await lettersOf(rig.log, account, { behind, newestFirst }), before);
      const last = kept[44]?.place;
      await rig.log.letters.removeDeadLetter(account, "l-44");
      await rig.log.letters.addDeadLetter(account, letter("later"));
      assert.deepEqual(await lettersOf(rig.log, account, { behind: last }), [letter("later")]);
    });

    const add = (id: string, { bytes = 9, by = rig.log } = {}) =>
      by.letters.addDeadLetter(account, letter(id, Buffer.alloc(bytes, id).toString("base64")));

    it("are refused where they do not fit, by all processes together, rather than dropped", async () => {
      const { letters: max } = lettersBound;
      const added = await Promise.allSettled(
        Array.from({ length: max + 15 }, (_, n) =>
          add(`l-${n}`, { by: n % 2 ? rig.log : rig.peer }),
        ),
      );
      const refused = added.filter((one) => one.status === "rejected");
      assert.deepEqual(
        refused.map(({ reason }) => isFull(reason)),
        Array.from({ length: 15 }, () => true),
      );
      const [first = letter(""), ...rest] = await lettersOf(rig.peer, account);
      assert.equal(rest.length, max - 1);
      await add(first.id);
      for (const is of [true, false]) {
        assert.equal(await rig.log.letters.removeDeadLetter(account, first.id), is);
      }
      await add("for the one that was removed");
      await assert.rejects(add("one more", { by: rig.peer }), isFull);
      assert.equal(await rig.peer.letters.countDeadLetters(account), max);
    });

    it("have room for a number of bytes together", async () => {
      const bytes = 0.7 * lettersBound.bytes;
      await add("large", { bytes });
      await assert.rejects(add("too much", { bytes }), isFull);
      await add("small");
      await rig.log.letters.removeDeadLetter(account, "large");
      await add("fits now", { bytes });
    });

    it("are not listed after text that is not a place", async () => {
      for (const behind of ["", "x", "-1", "1e3", "+inf"]) {
        await assert.rejects(lettersOf(rig.log, account, { behind }), hasCode("INVALID_ARGUMENT"));
      }
    });
  });
}
