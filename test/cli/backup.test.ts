import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { payment, take } from "../ledger/entries.ts";
import { openLog } from "../ledger/sqlite/rig.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { run } from "./resident.ts";

describe("payments-gateway backup", () => {
  it("copies a database that a gateway is writing to, and the copy can be restored", async (t) => {
    const path = directory(t);
    const file = join(path, "copy.sqlite");
    const data = join(path, "data");
    const running = await openLog(data);
    t.after(() => running.close());
    const before = await running.log.append("shop", payment({ externalId: "before" }));
    let writing = true;
    const writer = (async () => {
      for (let i = 0; writing; i++) {
        const externalId = `during-${i}`;
        await running.log.append("shop", payment({ externalId, paymentId: externalId }));
      }
    })();
    const { code, out, err } = await run(["backup", file], { env: { DATA_DIR: data } });
    writing = false;
    await writer;
    assert.deepEqual({ code, err }, { code: 0, err: "" });
    assert.match(out, /copy\.sqlite: \d+\.\d MiB\n$/);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    await running.log.append("shop", payment({ externalId: "after", paymentId: "after" }));

    const restored = join(path, "restored");
    mkdirSync(restored);
    copyFileSync(file, join(restored, "gateway.sqlite"));
    const { log, close } = await openLog(restored);
    t.after(close);
    const history = (externalId: string) => log.history("shop", EventKind.PAYMENT, externalId, 10);
    assert.equal((await history("before")).length, 1);
    assert.equal((await history("after")).length, 0);
    const { signal } = new AbortController();
    const seen = before.event?.cursor ?? "";
    await assert.rejects(log.read("shop", undefined, seen, { signal }), {
      code: "OUT_OF_RANGE",
    });
    const [first] = await take(await log.read("shop", undefined, "earliest", { signal }), 1);
    assert.equal(first?.externalId, "before");
    // Once opened, a restored database is no longer a copy: its cursors survive the next start.
    await close();
    const again = await openLog(restored);
    t.after(() => again.close());
    assert.ok(await again.log.read("shop", undefined, first?.cursor ?? "", { signal }));
  });

  it("overwrites no existing file, and leaves no file behind when it fails", async (t) => {
    const path = directory(t);
    const file = join(path, "copy.sqlite");
    writeFileSync(file, "an older copy");
    const data = join(path, "data");
    const refused = async (copy: string) => {
      const { code, err } = await run(["backup", copy], { env: { DATA_DIR: data } });
      assert.notEqual(code, 0);
      return err;
    };
    assert.match(await refused(join(path, "new")), /DATA_DIR: has no gateway\.sqlite/);
    await (await openLog(data)).close();
    assert.match(await refused(file), /copy\.sqlite: exists already/);
    assert.match(
      await refused(join(path, "no", "such", "file")),
      /no\/such\/file: cannot be written: .*ENOENT/,
    );
    assert.match(await refused(join(file, "below")), /below: cannot be written: .*ENOTDIR/);
    assert.deepEqual(readdirSync(path).sort(), ["copy.sqlite", "data"]);
    const { code, err } = await run(["backup", join(path, "new")]);
    assert.equal(code, 78);
    assert.match(err, /no directory is named: set DATA_DIR/);
    assert.equal(existsSync(join(path, "new")), false);
  });
});
