import assert from "node:assert/strict";
import { test } from "node:test";
import { accountKeys } from "../../src/redis/keys.ts";

test("the length of a key does not grow with the id that it is named after", () => {
  const keys = accountKeys("pgw", "default");
  const id = "x".repeat(900_000);
  const named = [keys.topic(id), keys.record(id)];
  for (const key of named) assert.ok(key.length < 400, `${key.length}`);
});
