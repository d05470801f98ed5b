import assert from "node:assert/strict";
import { test } from "node:test";
import { sign } from "../../src/wire/signature.ts";
import { run } from "../cli/resident.ts";
import { placesOf } from "../cli/run.ts";
import { findCanaries, type Place } from "../gateway/canaries.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";

const canaries = {
  pan: "4716108999716531",
  cvc: "canary-cvc-83750",
  pin: "canary-pin-91182",
  apiKey: "canary-api-key-77f0",
  accessToken: "canary-access-token-1c9e",
  authorization: "canary-authorization-5d",
  signature: "canary-signature-c2ln",
  track1: "canary-track1-B4716",
};
const members = {
  paid_by: canaries.pan.match(/.{4}/g)?.join("\u00a0"),
  cvc: canaries.cvc,
  pin: canaries.pin,
  api_key: canaries.apiKey,
  access_token: canaries.accessToken,
  authorization: `Basic ${canaries.authorization}`,
  signature: canaries.signature,
  track1: canaries.track1,
};
const json = JSON.stringify({ card: [members] });
const bodies: Record<string, string> = {
  json,
  cut: json.slice(0, -4),
  form: String(new URLSearchParams(members as Record<string, string>)),
  nested: JSON.stringify({ body: json, form: `a=1&cvc=${canaries.cvc}&b=2` }),
  xml: Object.entries(members)
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join("\n"),
};

test("neither the console nor the command line shows a secret of a dead letter", {
  timeout: 6 * timeoutMs,
}, async (t) => {
  const gateway = await startTestGateway();
  t.after(() => gateway.stop());
  for (const body of Object.values(bodies)) {
    const { status } = await fetch(`${gateway.publicUrl}/callbacks/default/payments`, {
      method: "POST",
      headers: { "x-service-signature": sign(Buffer.from(body), "sandbox-password") },
      body,
    });
    assert.equal(status, 200);
  }
  const get = async (path: string) => (await fetch(`${gateway.adminUrl}${path}`)).json();
  const { dead_letters: letters } = (await get("/api/dead-letters?account=default")) as {
    dead_letters: { id: string }[];
  };
  assert.equal(letters.length, Object.keys(bodies).length);

  const places: Place[] = [];
  for (const { id } of letters) {
    const { text = "", ...rest } = (await get(`/api/dead-letters/default/${id}`)) as {
      readonly text?: string;
      readonly body?: string;
    };
    assert.equal(rest.body, undefined, "the console has no use for what is not masked");
    const shown = await run(["dead-letters", "show", id], { env: placesOf(gateway) });
    assert.equal(shown.code, 0, shown.err);
    places.push({ where: `console ${id}`, text }, { where: `terminal ${id}`, text: shown.out });
    for (const told of [text, shown.out]) assert.ok(told.includes("[redacted]"), told);
  }
  assert.deepEqual(findCanaries(canaries, places), []);

  // Control: the search finds every canary in the letters themselves.
  const held = Object.entries(bodies).map(([where, text]) => ({ where, text }));
  for (const name of Object.keys(canaries)) {
    assert.ok(
      findCanaries(canaries, held).some((found) => found.startsWith(`${name}:`)),
      name,
    );
  }
});
