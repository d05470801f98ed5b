import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CardSchema } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { storeAway, troubleOf } from "../../src/redis/ask.ts";
import { createLogger, createTurnWriter } from "../../src/telemetry/log.ts";
import { activeSpan, noTracing } from "../../src/telemetry/tracing/tracing.ts";

function collecting() {
  const lines: string[] = [];
  return { lines, log: createLogger("trace", { write: (line) => void lines.push(line) }) };
}

const withoutTime = (line: string | undefined) =>
  line?.replace(/"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/, '"time":"-"');

test("a record is a line of JSON: level, time, its members in their order, the message", () => {
  const { log, lines } = collecting();
  const records = [
    {
      method: "payments.v1.PaymentService/GetPayment",
      code: "OK",
      durationMs: 1.25,
      caller: undefined,
      err: undefined,
    },
    { text: 'q"\\\n\u0000\u007f', long: "x".repeat(200), wide: "über 💶", lone: "\ud800" },
    { nan: Number.NaN, infinite: -Infinity, yes: true, no: false, zero: -0, big: 1e21 },
    { 'odd "name"': 1 },
    {},
  ];
  for (const record of records) {
    for (const level of ["debug", "info", "error"] as const) {
      lines.length = 0;
      log[level](record, "rpc %s");
      // `null` does not count as a plain value: this record passes `loggable`.
      log[level]({ ...record, nothing: null }, "rpc %s");
      const [plain, other] = lines.map(withoutTime);
      const members = JSON.stringify(record).slice(1, -1);
      const begin = `{"level":"${level}","time":"-"${members && ","}${members}`;
      assert.equal(plain, `${begin},"msg":"rpc %s"}\n`);
      assert.equal(other, `${begin},"nothing":null,"msg":"rpc %s"}\n`);
    }
  }
});

test("a full disk, or a reader that has left or is stuck, ends and holds no process that logs", async () => {
  const file = new URL("../../src/telemetry/log.ts", import.meta.url).href;
  const program = `
    import { createLogger } from ${JSON.stringify(file)};
    const log = createLogger("info");
    // As the command line does; a pipe then refuses what its reader has no room for.
    process.stdout.on("error", () => {});
    for (let i = 0; i < 100; i++) log.error({ lost: "x".repeat(10_000) }, "lost");
    log.info("lost");
    process.stderr.write("alive");`;
  const run = (stdout: number | "pipe") =>
    spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", stdout, "pipe"],
    });
  const full = openSync("/dev/full", "w");
  const onFullDisk = run(full);
  closeSync(full);
  const unread = run("pipe");
  unread.stdout?.destroy();
  const stuck = run("pipe");
  // All at once: what nobody reads of a process that has ended is dropped.
  const said = [onFullDisk, unread, stuck].map(({ stderr }) => text(stderr as Readable));
  assert.deepEqual(await Promise.all(said), ["alive", "alive", "alive"]);
  stuck.stdout?.destroy();
});

test("a flat message does not count as a record of plain values: its secrets are redacted", () => {
  const { log, lines } = collecting();
  const card = create(CardSchema, { number: "4111111111111111", cvv: "CANARY" });
  log.info(card, "card");
  log.info({ ...card }, "card");
  log.info(Object.assign(Object.create({ inherited: "CANARY" }), { a: 1 }), "of a class");
  assert.equal(lines.length, 3);
  assert.doesNotMatch(lines.join(""), /CANARY|4111/);
});

test("an error is logged as `loggable` has it, with what the store said", () => {
  const { log, lines } = collecting();
  log.warn({ err: storeAway(new Error("OOM command not allowed")) }, "callback");
  const { err } = JSON.parse(lines[0] ?? "");
  assert.deepEqual(Object.keys(err), [
    ...["name", "code", "message", "reason", "storeSaid", "frames", "cause"],
  ]);
  assert.deepEqual(
    [err.message, err.storeSaid],
    ["the store is out of reach", "OOM command not allowed"],
  );
});

test("what the store said is logged without the values of a command", () => {
  const { log, lines } = collecting();
  const said = "ERR unknown command 'auth', with args beginning with: 'user' 'CANARY' ";
  const notAsked = "Command queue state error. Last reply: CANARY";
  for (const message of [said, notAsked]) {
    const error = new Error(message);
    log.warn({ err: storeAway(error), trouble: troubleOf(error) }, "callback");
  }
  assert.doesNotMatch(lines.join(""), /CANARY/);
  const { err, trouble } = JSON.parse(lines[0] ?? "");
  assert.deepEqual(
    [err.storeSaid, trouble],
    ["ERR unknown command 'auth'", "ERR unknown command 'auth'"],
  );
});

test("a record of plain values has the ids of its trace", () => {
  const { log, lines } = collecting();
  const ids = { trace_id: "a".repeat(32), span_id: "b".repeat(16) };
  const span = { ...noTracing.start("", { kind: "internal" }), ids };
  activeSpan.run(span, () => {
    log.info({ code: "OK" }, "rpc");
    log.info({ code: "OK", nothing: null }, "rpc");
  });
  const [plain, other] = lines.map(withoutTime);
  assert.equal(plain, other?.replace(',"nothing":null', ""));
  assert.match(plain ?? "", /"trace_id":"a{32}","span_id":"b{16}"/);
});

test("lines of one turn are written together, in order, at its end or on flush", async () => {
  const written: string[] = [];
  const writer = createTurnWriter({ write: (text) => void written.push(text) });
  writer.write("a\n");
  writer.write("b\n");
  assert.deepEqual(written, []);
  await new Promise(setImmediate);
  assert.deepEqual(written, ["a\nb\n"]);
  writer.write("c\n");
  writer.flush();
  assert.deepEqual(written, ["a\nb\n", "c\n"]);
  writer.write("d".repeat(100_000));
  assert.equal(written.length, 3, "what is much does not wait");
  await new Promise(setImmediate);
  assert.equal(written.length, 3);
});

test("as text a record is a line that a person reads, whose values cannot pass for others", () => {
  const lines: string[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(line) }, "text");
  log.info({ method: "GetPayment", durationMs: 1.5, caller: "the shop" }, "rpc");
  log.warn({ origin: "x\u001b[2J a=b", quoted: 'a"b', c1: "\u009b2J\u202e" }, "refused\nready");
  log.error(new TypeError("4111111111111111"));
  log.info("ready public=http://127.0.0.1:4000");
  const [call = "", refused = "", failed = "", ready] = lines;
  assert.match(
    call,
    /^\d\d:\d\d:\d\d\.\d{3} INFO {2}rpc method=GetPayment durationMs=1.5 caller="the shop"\n$/,
  );
  assert.match(
    refused,
    / WARN {2}refused ready origin="x\\u001b\[2J a=b" quoted="a\\"b" c1="\?2J\?"\n$/,
  );
  assert.match(failed, / ERROR .* err=\{"name":"TypeError"/);
  assert.ok(!failed.includes("4111"));
  assert.equal(ready, "ready public=http://127.0.0.1:4000\n");
});
