import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventKindSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { ofRecordKey } from "../../src/ledger/record.ts";
import {
  allKinds,
  isKind,
  kindNamed,
  kindOf,
  kindOfResource,
  kinds,
} from "../../src/model/kinds.ts";
import { directory as emptyDirectory } from "../stores/sqlite/directories.ts";

test("the kinds are those of the contract, and each is found by its name and resource", () => {
  const numbers = EventKindSchema.values.map(({ number }) => number).filter((n) => n !== 0);
  assert.deepEqual([...allKinds], numbers);
  for (const kind of allKinds) {
    assert.equal(kindNamed(kinds[kind].name), kind);
    assert.equal(kindOfResource(kinds[kind].resource), kind);
  }
  assert.equal(kindNamed("refund" as string), undefined);
  assert.equal(kindOfResource("constructor"), undefined);
});

test("an unknown stored kind is refused, not treated as a payment", () => {
  const isRefused = (error: unknown) => error instanceof GatewayError && error.code === "INTERNAL";
  for (const kind of [0, 3, Number.NaN]) {
    assert.equal(isKind(kind), false);
    assert.throws(() => kindOf(kind), isRefused);
  }
  assert.deepEqual(ofRecordKey("payout:a:b"), { kind: EventKind.PAYOUT, externalId: "a:b" });
  assert.throws(() => ofRecordKey("refund:a"), isRefused);
});

test("a new kind is a compile error in each table that lacks it", async (t) => {
  const directory = emptyDirectory(t);
  const root = new URL("../..", import.meta.url).pathname;
  await cp(join(root, "src"), join(directory, "src"), { recursive: true });
  await cp(join(root, "package.json"), join(directory, "package.json"));
  await symlink(join(root, "node_modules"), join(directory, "node_modules"));
  const options = JSON.parse(await readFile(join(root, "tsconfig.json"), "utf8"));
  await writeFile(
    join(directory, "tsconfig.json"),
    JSON.stringify({ ...options, include: tables.map((table) => `src/${table}.ts`) }),
  );
  const generated = join(directory, "src/gen/payments/v1/event_pb.ts");
  const text = await readFile(generated, "utf8");
  const changed = text.replace("export const EventKind = {", "$&\n  THIRD: 3,");
  assert.notEqual(changed, text);
  await writeFile(generated, changed);

  const said = await compile(directory);
  for (const table of tables) assert.match(said, new RegExp(`^src/${table}\\.ts\\(`, "m"), table);
});

/** The modules with a table by kind. */
const tables = [
  "model/kinds",
  "callbacks/parse-callback",
  "core/authorize",
  "ledger/entry",
  "ledger/payment-state",
  "graphql/schema/event",
  "reconcile/probe",
];

/** The output of the compiler. Does not reject if the compilation fails. */
function compile(directory: string): Promise<string> {
  const compiler = join(directory, "node_modules/typescript/bin/tsc");
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, "--checkers", "1", "-p", directory],
      { cwd: directory, timeout: 100_000, env: { ...process.env, GOGC: "400" } },
      (_, stdout) => resolve(stdout),
    );
  });
}
