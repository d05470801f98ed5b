import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { GatewayError } from "../../src/errors.ts";
import {
  assertReadable,
  cursorOf,
  decodeCursor,
  maxSeq,
  newEpoch,
  placeOf,
  positionOf,
} from "../../src/stores/cursor.ts";

describe("cursors", () => {
  const epoch = "0123abcd";
  const positions = fc.tuple(
    fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    fc.integer({ min: 0, max: maxSeq }),
  );

  it("consist of twelve hex digits of time, six of sequence number, and the epoch", () => {
    assert.equal(cursorOf(placeOf(1_795_212_000_000, 31), epoch), "01a1faf93b0000001f-0123abcd");
  });

  it("decode to the position and epoch that they were encoded from", () => {
    fc.assert(
      fc.property(positions, (position) => {
        const place = placeOf(...position);
        assert.deepEqual(positionOf(place), position);
        assert.deepEqual(decodeCursor(cursorOf(place, epoch)), { place, epoch });
      }),
    );
  });

  it("sort as text in the order of their positions", () => {
    fc.assert(
      fc.property(positions, positions, (a, b) => {
        const byPlace = a[0] - b[0] || a[1] - b[1];
        const [one, other] = [cursorOf(placeOf(...a), epoch), cursorOf(placeOf(...b), epoch)];
        assert.equal(Math.sign(byPlace), one < other ? -1 : Number(one > other));
      }),
    );
  });

  it("reject malformed text with INVALID_ARGUMENT", () => {
    const isRefused = (text: string) =>
      assert.throws(
        () => decodeCursor(text),
        (error: unknown) => {
          assert.ok(error instanceof GatewayError && error.code === "INVALID_ARGUMENT");
          return error.details.fields?.map(({ path }) => path).join() === "after_cursor";
        },
      );
    fc.assert(fc.property(fc.string(), isRefused));
    const cursor = cursorOf(placeOf(1, 1), epoch);
    for (const near of [
      ` ${cursor}`,
      `${cursor}\n`,
      cursor.toUpperCase(),
      cursor.slice(1),
      `${cursor}0`,
      cursor.replace("-", "_"),
    ]) {
      isRefused(near);
    }
  });

  it("are readable from the floor to the tail of their own log", () => {
    const at = (ms: number) => cursorOf(placeOf(ms), epoch);
    const bounds = { epoch, floor: at(10), tail: at(20) };
    for (const ms of [10, 15, 20]) assertReadable(at(ms), bounds);
    for (const cursor of [at(9), at(21), at(15).replace(epoch, "ffffffff")]) {
      assert.throws(() => assertReadable(cursor, bounds), { code: "OUT_OF_RANGE" });
    }
  });

  it("carry a different epoch for each log", () => {
    assert.match(newEpoch(), /^[0-9a-f]{8}$/);
    assert.notEqual(newEpoch(), newEpoch());
  });
});
