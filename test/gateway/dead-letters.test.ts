import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../ask.ts";
import { accessEnv, newKey, scratch } from "../auth/issuer.ts";
import { logRecords } from "../log-records.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { sendCallback } from "./callers.ts";

const files = scratch();

/* What operators can ask of letters, and are refused: test/admin/dead-letters.test.ts. */
test("an operator reads and discards a dead letter, and the log names the operator", async (t) => {
  const key = newKey();
  const { log, records } = logRecords();
  const access = accessEnv(files, [{ name: "ops", key, scopes: ["admin"] }]);
  const gateway = closing(t, await startTestGateway(access, {}, log));
  const send = async (method: string, path: string) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const { status, text } = await ask(gateway.adminUrl + path, { method, headers });
    return { status, text, json: text === "" ? undefined : JSON.parse(text) };
  };
  const list = async () => (await send("GET", "/dead-letters")).json;

  await sendCallback(gateway, '{"cvv": "q-941-q"}');
  const [{ id }] = (await list()).dead_letters;
  const path = `/dead-letters/default/${id}`;
  const { text, body } = (await send("GET", `${path}?raw=false`)).json;
  assert.deepEqual([text, body], ['{\n  "cvv": "[redacted]"\n}', undefined]);
  const { json } = await send("GET", path);
  assert.equal(Buffer.from(json.body, "base64").toString(), '{"cvv": "q-941-q"}');
  const gone = await send("DELETE", path);
  assert.deepEqual([gone.status, gone.text], [204, ""]);
  for (const method of ["DELETE", "GET"]) assert.equal((await send(method, path)).status, 404);
  assert.equal((await send("POST", `${path}/replay`)).status, 404);
  assert.deepEqual(await list(), { dead_letters: [], total: 0 });

  const told = records.filter(({ operator }) => operator !== undefined);
  assert.deepEqual(
    told.map(({ msg, operator, account, resource, id }) => [msg, operator, account, resource, id]),
    ["read as it came", "discarded"].map((did) => [
      ...[`dead letter ${did}`, "key:ops", "default", "payments", id],
    ]),
  );
  assert.doesNotMatch(JSON.stringify(records), /q-941-q/, "nothing of its body is logged");

  // The same callback is accepted again: a discarded letter is not blocked.
  await sendCallback(gateway, '{"cvv": "q-941-q"}');
  assert.equal((await list()).total, 1);
});
