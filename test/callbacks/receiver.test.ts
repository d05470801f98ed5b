import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Kind } from "../../src/model/kinds.ts";
import { sign } from "../../src/wire/signature.ts";
import { connected } from "../ask.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { steps } from "../ledger/entries.ts";
import { lettersOf } from "../ledger/letters.ts";
import { overridden } from "../overridden.ts";
import { until } from "../until.ts";
import { account, startReceiver } from "./harness.ts";

const success = JSON.stringify({
  id: "id-1",
  external_id: "order-1",
  operation: "payment",
  details: {
    amount: "100.50",
    currency: "UAH",
    payment_id: "pay-1",
    status: "success",
    status_code: "transaction_successful",
  },
});
const payoutSuccess = JSON.stringify({
  external_id: "payout-1",
  transaction_id: "0b3e6f5e-8f1c-4b7a-9b57-6a8c1de0a001",
  status: "success",
});

const signed = (body: string | Uint8Array, password = "password") => ({
  headers: { "x-service-signature": sign(Buffer.from(body), password) },
  body,
});
/** The head of a request whose body is sent apart. */
const headOf = (...headers: string[]) =>
  ["POST /callbacks/shop/payments HTTP/1.1", "Host: x", ...headers, "", ""].join("\r\n");
const someSignature = `X-Service-Signature: ${"A".repeat(27)}=`;
const history = (log: Ledger, externalId = "order-1", kind: Kind = EventKind.PAYMENT) =>
  log.history("shop", kind, externalId, 100);

describe("the callback receiver", () => {
  it("answers 200 to a signed payment callback once it is stored", async () => {
    await using receiver = await startReceiver();
    const { status, headers, text } = await receiver.send(signed(success));
    assert.deepEqual([status, headers["content-length"], text], [200, "0", ""]);
    const [event] = await history(receiver.log);
    assert.equal(event?.source, EventSource.CALLBACK);
    assert.equal(event?.paymentId, "pay-1");
    assert.equal(event?.final, true);
    assert(event?.resource.case === "payment");
    assert.equal(event.resource.value.details?.amount, "100.50");
    const [{ requestId, durationMs, ...told } = assert.fail(), ...others] = receiver.verdicts;
    assert.deepEqual(told, {
      verdict: "stored",
      account: "shop",
      resource: "payments",
      externalId: "order-1",
    });
    assert.ok(durationMs > 0);
    assert.deepEqual(others, []);
  });

  it("uses the sender's request id if that is well-formed, else a new one", async () => {
    await using receiver = await startReceiver();
    for (const id of ["hook-1", "4111111111111111"]) {
      const { headers, body } = signed(success);
      const answer = await receiver.send({ headers: { ...headers, "x-request-id": id }, body });
      assert.equal(answer.headers["x-request-id"], receiver.verdicts.at(-1)?.requestId);
    }
    const [given, made] = receiver.verdicts.map(({ requestId }) => requestId);
    assert.equal(given, "hook-1");
    assert.match(made ?? "", /^[0-9a-f-]{36}$/);
  });

  it("answers 200 to a signed payout callback once it is stored", async () => {
    await using receiver = await startReceiver();
    const path = "/callbacks/shop/payouts";
    assert.equal((await receiver.send({ path, ...signed(payoutSuccess) })).status, 200);
    const [event] = await history(receiver.log, "payout-1", EventKind.PAYOUT);
    assert.equal(event?.transactionId, "0b3e6f5e-8f1c-4b7a-9b57-6a8c1de0a001");
    assert(event?.resource.case === "payout");
    assert.equal(event.resource.value.status, "success");
  });

  it("answers 200 to the same callback again and publishes nothing twice", async () => {
    await using receiver = await startReceiver();
    const pretty = JSON.stringify(JSON.parse(success), null, 2);
    for (const body of [success, success, pretty]) {
      assert.equal((await receiver.send(signed(body))).status, 200);
    }
    const many = Array.from({ length: 20 }, () => receiver.send(signed(success)));
    for (const { status } of await Promise.all(many)) assert.equal(status, 200);
    assert.deepEqual(steps(await history(receiver.log)), ["payment:success"]);
    const verdicts = receiver.verdicts.map(({ verdict }) => verdict);
    assert.deepEqual(verdicts, ["stored", ...Array(22).fill("duplicate")]);
  });

  describe("signatures", () => {
    const right = sign(Buffer.from(success), "password");
    for (const [what, signatures] of [
      ["without a signature", []],
      ["with the signature of another body", [sign(Buffer.from("{}"), "password")]],
      ["with a valid signature twice", [right, right]],
      ["with a wrong signature behind a valid one", [right, "wrong"]],
      ["with a wrong signature before a valid one", ["wrong", right]],
    ] as const) {
      it(`refuses a callback ${what}, and stores nothing`, async () => {
        await using receiver = await startReceiver();
        const headers = { "X-Service-Signature": [...signatures] };
        assert.equal((await receiver.send({ headers, body: success })).status, 401);
        assert.equal(receiver.verdicts[0]?.verdict, "bad_signature");
        assert.deepEqual(await history(receiver.log), []);
        assert.deepEqual(await lettersOf(receiver.log, "shop"), []);
      });
    }

    it("refuses another merchant's password: the path names the merchant", async () => {
      const accounts = { shop: account("password"), other: account("other-password") };
      await using receiver = await startReceiver({ accounts });
      assert.equal((await receiver.send(signed(success, "other-password"))).status, 401);
      const path = "/callbacks/other/payments";
      const { status } = await receiver.send({ path, ...signed(success, "other-password") });
      assert.equal(status, 200);
      assert.deepEqual(await history(receiver.log), []);
      const others = await receiver.log.history("other", EventKind.PAYMENT, "order-1", 10);
      assert.equal(others.length, 1);
    });

    it("accepts a previous password during rotation, but never an empty one", async () => {
      await using receiver = await startReceiver({ accounts: { shop: account("new", "old", "") } });
      assert.equal((await receiver.send(signed(success, "old"))).status, 200);
      assert.equal((await receiver.send(signed(success, "new"))).status, 200);
      assert.equal((await receiver.send(signed(success, ""))).status, 401);
      assert.equal((await receiver.send(signed(success, "older"))).status, 401);
    });
  });

  describe("bodies that are not understood", () => {
    const bodies: Record<string, string | Uint8Array> = {
      "not JSON": "<html>oops</html>",
      empty: "",
      "truncated JSON": success.slice(0, -5),
      "a list": `[${success}]`,
      null: "null",
      "not UTF-8": Buffer.from(success.replace("order-1", "order-\u00ff"), "latin1"),
      "without an external_id": '{"details":{"payment_id":"p"}}',
      "without anything that identifies it": '{"external_id":"order-1","details":{}}',
    };
    for (const [name, body] of Object.entries(bodies)) {
      it(`keeps one that is ${name} whole as a dead letter, and answers 200`, async () => {
        await using receiver = await startReceiver();
        assert.equal((await receiver.send(signed(body))).status, 200);
        assert.equal((await receiver.send(signed(body))).status, 200);
        const letters = await lettersOf(receiver.log, "shop");
        assert.equal(letters.length, 1);
        assert.deepEqual(Buffer.from(letters[0]?.body ?? "", "base64"), Buffer.from(body));
        assert.equal(letters[0]?.kind, EventKind.PAYMENT);
        assert.match(letters[0]?.reason ?? "", /^[ -~]+$/);
        assert(!letters[0]?.reason.includes("oops"));
        assert.equal(receiver.verdicts[0]?.verdict, "dead_letter");
        assert.deepEqual(await history(receiver.log), []);
      });
    }

    it("keeps the same body from the payments and the payouts path as two letters", async () => {
      await using receiver = await startReceiver();
      await receiver.send(signed("{}"));
      await receiver.send({ path: "/callbacks/shop/payouts", ...signed("{}") });
      const kinds = (await lettersOf(receiver.log, "shop")).map(({ kind }) => kind);
      assert.deepEqual(kinds, [EventKind.PAYMENT, EventKind.PAYOUT]);
    });

    it("ignores fields of an unexpected type, and reports their paths", async () => {
      await using receiver = await startReceiver();
      const body = success.replace('"100.50"', '{"value":1}').replace('"id-1"', "null");
      assert.equal((await receiver.send(signed(body))).status, 200);
      assert.deepEqual(receiver.faults, ["shop callback payments details.amount"]);
      assert.deepEqual(steps(await history(receiver.log)), ["payment:success"]);
    });
  });

  describe("requests that are not callbacks", () => {
    it("answers 404 at any other path", async () => {
      await using receiver = await startReceiver();
      for (const path of [
        "/callbacks/stranger/payments",
        "/callbacks/shop/refunds",
        "/callbacks/shop",
        "/callbacks/shop/payments/",
        "/callbacks//payments",
        "/callbacks/%zz/payments",
        "/callbacks/__proto__/payments",
        "/callbacks/shop/payments/more",
      ]) {
        assert.equal((await receiver.send({ path, ...signed(success) })).status, 404, path);
        const { requestId, durationMs, ...told } = receiver.verdicts.pop() ?? assert.fail();
        assert.deepEqual(told, { verdict: "not_found" }, "nothing that a stranger made up");
      }
    });

    it("accepts a percent-encoded account name, followed by a query", async () => {
      await using receiver = await startReceiver({ accounts: { "my shop": account("password") } });
      const path = "/callbacks/my%20shop/payments?from=1";
      assert.equal((await receiver.send({ path, ...signed(success) })).status, 200);
    });

    it("answers 405 with Allow to any other method", async () => {
      await using receiver = await startReceiver();
      for (const method of ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]) {
        const { status, headers } = await receiver.send({ method });
        assert.deepEqual([status, headers.allow], [405, "POST"], method);
        assert.equal(receiver.verdicts.pop()?.verdict, "method_not_allowed");
      }
    });

    it("answers 404 without waiting for the body", async (t) => {
      await using receiver = await startReceiver();
      const socket = await connected(t, receiver.port);
      socket.write(
        "POST /callbacks/stranger/payments HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
      );
      const [answer] = (await once(socket, "data")) as [Buffer];
      assert.match(answer.toString(), /^HTTP\/1\.1 404 /);
    });
  });

  it("answers 401 without waiting for a body that has no signature", async (t) => {
    await using receiver = await startReceiver();
    const socket = await connected(t, receiver.port);
    socket.write(`${headOf("Content-Length: 500")}{`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 401 /);
  });

  describe("large bodies", () => {
    const messageBytes = 1024 * 1024;
    const filled = (length: number) => success.padEnd(length, " ");

    it("are accepted up to exactly 1 MiB", async () => {
      await using receiver = await startReceiver();
      assert.equal((await receiver.send(signed(filled(messageBytes)))).status, 200);
    });

    it("are answered 413 from one byte more on, by their Content-Length", async () => {
      await using receiver = await startReceiver();
      assert.equal((await receiver.send(signed(filled(messageBytes + 1)))).status, 413);
      assert.equal(receiver.verdicts[0]?.verdict, "too_large");
      assert.deepEqual(await history(receiver.log), []);
    });

    it("are answered 413 also in chunks, before the body ends", async (t) => {
      await using receiver = await startReceiver();
      const body = filled(messageBytes + 1);
      const socket = await connected(t, receiver.port);
      const signature = `X-Service-Signature: ${sign(Buffer.from(body), "password")}`;
      socket.write(headOf(signature, "Transfer-Encoding: chunked"));
      socket.write(`${body.length.toString(16)}\r\n${body}\r\n`);
      const [first] = (await once(socket, "data")) as [Buffer];
      assert.match(first.toString(), /^HTTP\/1\.1 413 /);
    });

    it("are answered even to a client that reads only after it has sent everything", async (t) => {
      await using receiver = await startReceiver();
      const chunk = Buffer.alloc(64 * 1024, " ");
      const socket = (await connected(t, receiver.port)).pause();
      socket.write(headOf(someSignature, `Content-Length: ${48 * chunk.length}`));
      await until(() => receiver.verdicts[0]?.verdict === "too_large");
      for (let i = 0; i < 48; i++) {
        await new Promise<void>((resolve, reject) => {
          socket.write(chunk, (error) => (error ? reject(error) : setImmediate(resolve)));
        });
      }
      const [answer] = (await once(socket.resume(), "data")) as [Buffer];
      assert.match(answer.toString(), /^HTTP\/1\.1 413 .*over 1 MiB$/s);
    });
  });

  it("answers 503 with Retry-After to a body that the budget of memory has no room for", async () => {
    await using receiver = await startReceiver({ maxBytes: 100_000 });
    const { status, headers } = await receiver.send(signed(success.padEnd(200_000, " ")));
    assert.deepEqual([status, headers["retry-after"]], [503, "5"]);
    assert.equal(receiver.verdicts[0]?.verdict, "overloaded");
    assert.deepEqual(await history(receiver.log), []);
  });

  it("answers 408 to a body that does not arrive, and closes the connection", async () => {
    await using receiver = await startReceiver({ bodyTimeoutMs: 50 });
    const answer = await receiver.sendRaw(`${headOf(someSignature, "Content-Length: 100")}{`);
    assert.match(answer, /^HTTP\/1\.1 408 /);
    assert.equal(receiver.verdicts[0]?.verdict, "slow");
  });

  it("keeps working after a client disconnects in the middle of its body", async (t) => {
    await using receiver = await startReceiver();
    const socket = await connected(t, receiver.port);
    socket.write(`${headOf(someSignature, "Content-Length: 100")}{`, () =>
      setImmediate(() => socket.destroy()),
    );
    await until(() => receiver.verdicts[0]?.verdict === "aborted");
    assert.equal((await receiver.send(signed(success))).status, 200);
  });

  describe("with the store out of reach", () => {
    const broken = (error: Error): Ledger => {
      const log: Ledger = createMemoryLedger({ retentionMs: 86_400_000 });
      const fail = () => Promise.reject(error);
      const letters = overridden(log.letters, { addDeadLetter: fail });
      return overridden(log, { append: fail, letters });
    };

    const away = new GatewayError("UNAVAILABLE", "redis://secret@host is away");
    const backSoon = new GatewayError("UNAVAILABLE", "away", { retryAfterMs: 1_200 });
    for (const [name, body, error, retryAfter] of [
      ["a callback", success, away, "5"],
      ["a dead letter", "not JSON", away, "5"],
      ["a callback, with the store's own time in whole seconds", success, backSoon, "2"],
      ["a callback after an unexpected error", success, new TypeError("a bug"), "5"],
    ] as const) {
      it(`answers 503 with Retry-After to ${name}`, async () => {
        await using receiver = await startReceiver({ log: broken(error) });
        const { status, headers, text } = await receiver.send(signed(body));
        assert.deepEqual([status, headers["retry-after"]], [503, retryAfter]);
        assert(!text.includes("secret"));
        assert.equal(receiver.verdicts[0]?.verdict, "unavailable");
        assert.equal(receiver.verdicts[0]?.error, error);
      });
    }
  });
});
