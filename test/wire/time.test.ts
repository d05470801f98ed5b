import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { writeInstant } from "../../src/model/instant.ts";
import { readInstant } from "../../src/wire/time.ts";

describe("an instant is read from", () => {
  const read: Array<[text: string, seconds: string, nanos?: number]> = [
    ["2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z"],
    ["2026-11-20t10:00:00z", "2026-11-20T10:00:00Z"],
    ["2026-11-20T10:00:00", "2026-11-20T10:00:00Z"],
    ["2026-11-20 10:00:00", "2026-11-20T10:00:00Z"],
    ["2026-11-20T10:00", "2026-11-20T10:00:00Z"],
    ["2026-11-20", "2026-11-20T00:00:00Z"],
    ["2026-11-20T10:00:00+02:00", "2026-11-20T08:00:00Z"],
    ["2026-11-20T10:00:00-0530", "2026-11-20T15:30:00Z"],
    ["2026-11-20T10:00:00+02", "2026-11-20T08:00:00Z"],
    ["2026-11-20 10:00:00 +02:00", "2026-11-20T08:00:00Z"],
    ["2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"],
    ["2026-11-20T10:00:00.1Z", "2026-11-20T10:00:00Z", 100_000_000],
    ["2026-11-20T10:00:00.123456", "2026-11-20T10:00:00Z", 123_456_000],
    ["2026-11-20T10:00:00,123456789+00:00", "2026-11-20T10:00:00Z", 123_456_789],
    ["2026-11-20T10:00:00.9999999999Z", "2026-11-20T10:00:00Z", 999_999_999],
    ["1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z", 500_000_000],
    ["2024-02-29", "2024-02-29T00:00:00Z"],
    ["2000-02-29", "2000-02-29T00:00:00Z"],
    ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"],
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
    ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"],
  ];
  for (const [text, whole, nanos = 0] of read) {
    it(text, () => {
      const seconds = BigInt(Date.parse(whole) / 1000);
      const expected = { $typeName: "google.protobuf.Timestamp", seconds, nanos };
      assert.deepEqual(readInstant(text), expected);
    });
  }
});

describe("an instant is not read from", () => {
  const refused = [
    "",
    " ",
    "now",
    "12/28",
    "2026",
    "2026-11",
    "20261120",
    "2026-11-20T",
    "2026-11-20T10",
    "2026-11-20T10:00:00.Z",
    "2026-11-20T10:00:00Zx",
    "2026-11-20T10:00:00Z\n",
    " 2026-11-20T10:00:00Z",
    "2026-13-01",
    "2026-00-01",
    "2026-11-31",
    "2026-11-00",
    "2026-02-29",
    "2100-02-29",
    "2026-11-20T24:00:00Z",
    "2026-11-20T10:60:00Z",
    "2026-11-20T10:00:61Z",
    "2026-11-20T10:00:00+24:00",
    "2026-11-20T10:00:00+02:60",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "+002026-11-20T10:00:00Z",
    "1795132800",
    "٢٠٢٦-11-20",
  ];
  for (const text of refused) {
    it(JSON.stringify(text), () => assert.equal(readInstant(text), undefined));
  }
});

describe("an instant is written", () => {
  const at = (text: string, nanos: number) => {
    const seconds = BigInt(Date.parse(text) / 1000);
    return writeInstant({ $typeName: "google.protobuf.Timestamp", seconds, nanos });
  };

  it("in UTC with as many digits as it needs", () => {
    const text = "2026-11-20T10:00:00Z";
    assert.equal(at(text, 0), text);
    assert.equal(at(text, 120_000_000), "2026-11-20T10:00:00.120Z");
    assert.equal(at(text, 1_000), "2026-11-20T10:00:00.000001Z");
    assert.equal(at(text, 123_456_789), "2026-11-20T10:00:00.123456789Z");
    assert.equal(at("1969-12-31T23:59:59Z", 5e8), "1969-12-31T23:59:59.500Z");
  });

  it("never outside the years 1 to 9999, nor with nanoseconds beyond a second", () => {
    const write = (seconds: bigint, nanos = 0) =>
      writeInstant({ $typeName: "google.protobuf.Timestamp", seconds, nanos });
    assert.equal(write(253_402_300_799n), "9999-12-31T23:59:59Z");
    assert.equal(write(253_402_300_800n), undefined);
    assert.equal(write(-62_135_596_800n), "0001-01-01T00:00:00Z");
    assert.equal(write(-62_135_596_801n), undefined);
    assert.equal(write(0n, 1e9), undefined);
    assert.equal(write(0n, -1), undefined);
  });

  it("so that readInstant and Date read the same instant", () => {
    const seconds = fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n });
    const nanos = fc.integer({ min: 0, max: 999_999_999 });
    fc.assert(
      fc.property(seconds, nanos, (s, n) => {
        const instant = { $typeName: "google.protobuf.Timestamp", seconds: s, nanos: n } as const;
        const text = writeInstant(instant);
        assert.ok(text !== undefined);
        assert.deepEqual(readInstant(text), instant);
        const whole = text.replace(/\.\d+Z$/, "Z");
        assert.equal(BigInt(Date.parse(whole)), s * 1000n);
      }),
      { numRuns: 2_000 },
    );
  });
});
