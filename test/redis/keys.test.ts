import assert from "node:assert/strict";
import { test } from "node:test";
import { accountKeys, boundedId } from "../../src/redis/keys.ts";

test("a key's name contains an id of up to 255 bytes unchanged", () => {
  for (const id of ["order-1", "ї:{1}", "x".repeat(255)]) assert.equal(boundedId(id), id);
});

test("a key's name contains a digest of a longer id, and no two ids share a name", () => {
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

test("the length of a key does not grow with the id that it is named after", () => {
  const keys = accountKeys("pgw", "default");
  const id = "x".repeat(900_000);
  const named = [keys.topic(id), keys.record(id)];
  for (const key of named) assert.ok(key.length < 400, `${key.length}`);
});
