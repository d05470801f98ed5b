import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { run } from "../../test/cli/resident.ts";
import { directory } from "../../test/stores/sqlite/directories.ts";

const dir = directory({ after });
const vectorsFile = new URL("../../test/fixtures/callback-signatures.json", import.meta.url);
/** A body that was signed with this password. */
const [{ password, bodyBase64, signature }] = JSON.parse(await readFile(vectorsFile, "utf8"));
const body = Buffer.from(bodyBase64, "base64");

test("signs what is on standard input, with the password of a variable or of a file", async () => {
  const file = join(dir, "password.txt");
  await writeFile(file, `${password}\n`);
  const signed = { code: 0, out: `X-SERVICE-SIGNATURE: ${signature}\n`, err: "" };
  const env = { UPSTREAM_PASSWORD: password };
  assert.deepEqual(await run(["sign", "-"], { env, input: body }), signed);
  assert.deepEqual(await run(["sign", "-", "--password-file", file], { input: body }), signed);
});

test("verify accepts a whole header line and a previous password, and hints at the fault", async () => {
  const verify = async (input: Uint8Array, header: string, env: Record<string, string>) => {
    const { code, out } = await run(["verify", "-", "--signature", header, "--json"], {
      input,
      env,
    });
    return { code, ...JSON.parse(out) };
  };
  const env = { UPSTREAM_PASSWORD: "password" };
  const rotated = { UPSTREAM_PASSWORD: "new", UPSTREAM_PREVIOUS_PASSWORDS: "older,password" };
  const right = { code: 0, valid: true };
  assert.deepEqual(await verify(body, `x-service-signature: ${signature}`, env), right);
  assert.deepEqual(await verify(body, signature, rotated), right);
  assert.deepEqual(await verify(Buffer.concat([body, Buffer.from("\n")]), signature, env), {
    code: 1,
    valid: false,
    hint: "it would be right without the line break at the body's end",
  });
  assert.match(
    (await verify(body, signature.replace("=", ""), env)).hint,
    /not base64url with padding/,
  );
  assert.equal((await verify(body, signature, { UPSTREAM_PASSWORD: "other" })).hint, undefined);
});

test("a missing or unreadable password ends with 64, a password given twice with 78", async () => {
  const sign = (env: Record<string, string>, ...args: string[]) =>
    run(["sign", "-", ...args], { env, input: "{}" });
  const none = await sign({});
  assert.equal(none.code, 64);
  assert.match(none.err, /give --password-file, or set UPSTREAM_PASSWORD/);
  assert.equal((await sign({}, "--password-file", join(dir, "nowhere"))).code, 64);
  const twice = await sign({ UPSTREAM_PASSWORD: "a", UPSTREAM_PASSWORD_FILE: "b" });
  assert.equal(twice.code, 78);
  assert.match(twice.err, /^UPSTREAM_PASSWORD: is given twice/);
});
