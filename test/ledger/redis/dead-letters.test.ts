import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { GatewayError } from "../../../src/errors.ts";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { lettersOf } from "../letters.ts";
import { type Replica, replica } from "./rig.ts";

describe("dead letters in Redis", { skip: withoutRedis, timeout: 30_000 }, () => {
  let server: RedisServer;
  let one: Replica;
  before(async () => {
    server = await startRedis();
    one = await replica(server.url);
  });
  after(async () => {
    await one.close();
    await server.close();
  });

  const addDeadLetter = (account: string, id: string, body = id) =>
    one.log.letters.addDeadLetter(account, {
      id,
      kind: EventKind.PAYMENT,
      body,
      reason: "the body is not JSON",
      receivedAtMs: 1_700_000_000_000,
    });
  const ids = async (account: string) => (await lettersOf(one.log, account)).map(({ id }) => id);
  const isFull = (error: unknown) =>
    error instanceof GatewayError &&
    error.code === "UNAVAILABLE" &&
    error.details.reason === "DEAD_LETTERS_FULL";

  it("are refused when they do not fit, rather than drop another", async () => {
    // Fills 60 of the 64 Mi characters, with letters as large as a body may be.
    const mebi = "x".repeat(1024 * 1024);
    for (let i = 0; i < 60; i++) await addDeadLetter("large", `large-${i}`, mebi);
    await assert.rejects(addDeadLetter("large", "too much", mebi.repeat(5)), isFull);
    await addDeadLetter("large", "small");
    await one.log.letters.removeDeadLetter("large", "large-0");
    await one.log.letters.removeDeadLetter("large", "large-0");
    await addDeadLetter("large", "fits now", mebi.repeat(4));
    await assert.rejects(addDeadLetter("large", "no more", mebi.repeat(2)), isFull);
    assert.equal((await ids("large")).length, 61);
  });

  it("are 10,000 at most, listed in the order of their arrival", async () => {
    const names = Array.from({ length: 10_000 }, (_, i) => `letter-${i}`);
    // In batches, since each request has to be answered within a second.
    for (let at = 0; at < names.length; at += 250) {
      await Promise.all(names.slice(at, at + 250).map((id) => addDeadLetter("many", id)));
    }
    await assert.rejects(addDeadLetter("many", "one more"), isFull);
    await addDeadLetter("many", "letter-7");
    assert.deepEqual(await ids("many"), names);
    await one.log.letters.removeDeadLetter("many", "letter-0");
    await addDeadLetter("many", "one more");
    assert.deepEqual(await ids("many"), [...names.slice(1), "one more"]);
  });
});
