import assert from "node:assert/strict";
import { test } from "node:test";
import { boundedId } from "../../src/model/bounded-id.ts";

test("an id of up to 255 bytes is unchanged", () => {
  for (const id of ["order-1", "ї:{1}", "x".repeat(255)]) assert.equal(boundedId(id), id);
});

test("a longer id becomes its digest, and no two ids become one", () => {
  const long = "x".repeat(1_000_000);
  const ids = [
    "x".repeat(255),
    "x".repeat(256),
    "я".repeat(128),
    long,
    `${long}y`,
    boundedId(long),
  ];
  const names = ids.map(boundedId);
  assert.equal(new Set(names).size, ids.length, `${names}`);
  for (const name of names) assert.ok(Buffer.byteLength(name) <= 255);
});
