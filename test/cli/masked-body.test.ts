import assert from "node:assert/strict";
import { test } from "node:test";
import { maskedBody } from "../../src/cli/masked-body.ts";

const shown = (text: string) => maskedBody(Buffer.from(text));

test("hides what the contract marks as secret, wherever it stands", () => {
  const canaries = { cvv: "941", pan: "4000000000003014", token: "tok-canary", full_number: "77" };
  const text = shown(JSON.stringify({ a: [{ deep: canaries }], fullNumber: "88", CVC: 123 }));
  for (const secret of ["941", "3014", "tok-canary", "77", "88", "123"]) {
    assert.ok(!text.includes(secret), text);
  }
  assert.equal(text.match(/\[redacted\]/g)?.length, 6);
});

test("masks card numbers in texts and numbers, and keeps the digits of others", () => {
  assert.equal(
    shown('{"note":"paid by 4111 1111 1111 1111","as_number":4111111111111111,"amount":10.10}'),
    '{\n  "note": "paid by 4111 11** **** 1111",\n  "as_number": "411111******1111",\n  "amount": 10.10\n}',
  );
  assert.equal(shown('{"fc_id":9007199254740993}'), '{\n  "fc_id": 9007199254740993\n}');
});

test("hides them in what is no JSON too, also where it was cut off", () => {
  assert.equal(shown('{"id":1,"cvv":"94'), '{"id":1,"cvv":[redacted]');
  assert.equal(shown('{"id":1,"cvv": 941, "x":2'), '{"id":1,"cvv": [redacted], "x":2');
  assert.equal(shown("number=4111111111111111&amount=10.10"), "number=[redacted]&amount=10.10");
  assert.equal(shown("card 4111111111111111 declined"), "card 411111******1111 declined");
});

test("lets nothing through that a terminal obeys", () => {
  for (const text of ['{"a":"\u001b[2J\u009b\u202e"}', '{"a": broken \u001b[2J\r\u0007']) {
    assert.doesNotMatch(shown(text), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
  assert.equal(maskedBody(Uint8Array.of(0xff, 0xfe)), "[2 bytes that are not UTF-8]");
});
