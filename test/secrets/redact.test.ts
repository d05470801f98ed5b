import assert from "node:assert/strict";
import { test } from "node:test";
import { isSecretName, mask, maskedText } from "../../src/admin/masked-text.ts";

const number = "4111111111111111";
const shown = "411111******1111";

test("JSON is indented, and its numbers keep their digits", () => {
  const text = '{"amount":10.10,"big":9007199254740993,"small":1e-7,"list":[1.0,null,true]}';
  assert.equal(
    maskedText(text).replace(/\s+/g, ""),
    '{"amount":10.10,"big":9007199254740993,"small":1e-7,"list":[1.0,null,true]}',
  );
  assert.match(maskedText('{"a":1}'), /^\{\n {2}"a": 1\n\}$/);
});

test("card numbers are masked wherever they stand", () => {
  for (const text of [
    `{"number": ${number}}`,
    `{"text": "paid with ${number}!"}`,
    '{"text": "4111 1111 1111 1111"}',
    `{"deep": [{"a": ["${number}"]}]}`,
    `{"${number}": 1}`,
    '{"escaped": "\\u0034111111111111111"}',
    `"${number}"`,
    number,
    `not json: ${number}`,
    `{"cut": "${number}`,
  ]) {
    const result = maskedText(text);
    assert.ok(!result.replace(/[ -]/g, "").includes(number), text);
    assert.match(result, /\*{2}/, text);
  }
  assert.equal(JSON.parse(maskedText(`{"a": "x ${number}"}`)).a, `x ${shown}`);
});

test("values of secret members are masked, also in what is no JSON any more", () => {
  const options = { isSecretName };
  for (const name of ["token", "cvv", "auth_token", "Card-Number", "cryptogram", "PASSWORD"]) {
    for (const [opening, closing] of [
      ["{", "}"],
      ['{"card": {', "}}"],
      ["{", ""],
      ["<html>", ""],
    ]) {
      for (const value of [
        '"s3cret-value"',
        "987654",
        '["s3cret-value"]',
        '{"v": "s3cret-value"}',
      ]) {
        const text = `${opening}"${name}": ${value}${closing}`;
        const broken = closing === "";
        if (broken && /^[[{]/.test(value)) continue;
        const result = maskedText(text, options);
        assert.doesNotMatch(result, /s3cret|987654/, text);
        assert.ok(result.includes(mask), text);
      }
    }
  }
  const cut = maskedText('{"a": 1, "token": "s3cret-val', options);
  assert.doesNotMatch(cut, /s3cret/);
  assert.equal(JSON.parse(maskedText('{"status": "pending"}', options)).status, "pending");
});

test("what is known to be an identifier stays as it is", () => {
  const isIdentifier = (name: string) => name.endsWith("_id");
  const text = `{"external_id": "${number}", "note": "${number}"}`;
  assert.deepEqual(JSON.parse(maskedText(text, { isIdentifier })), {
    external_id: number,
    note: shown,
  });
});

test("a text that is nested too deep to be walked is masked all the same", () => {
  const text = `${"[".repeat(200_000)}"${number}"`;
  assert.ok(!maskedText(text).includes(number));
  assert.ok(!maskedText(`${text}${"]".repeat(200_000)}`).includes(number));
});
