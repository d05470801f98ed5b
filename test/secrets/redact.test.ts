import assert from "node:assert/strict";
import { test } from "node:test";
import { isSecretName, mask, redact } from "../../src/secrets/redact.ts";

const number = "4111111111111111";
const shown = "411111******1111";

test("JSON is indented, and its numbers keep their digits", () => {
  const text = '{"amount":10.10,"big":9007199254740993,"small":1e-7,"list":[1.0,null,true]}';
  assert.equal(
    redact(text).replace(/\s+/g, ""),
    '{"amount":10.10,"big":9007199254740993,"small":1e-7,"list":[1.0,null,true]}',
  );
  assert.match(redact('{"a":1}'), /^\{\n {2}"a": 1\n\}$/);
});

test("card numbers are masked in every place of a text", () => {
  for (const text of [
    `{"paid_by": ${number}}`,
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
    const result = redact(text);
    assert.ok(!result.replace(/[ -]/g, "").includes(number), text);
    assert.match(result, /\*{2}/, text);
  }
  assert.equal(JSON.parse(redact(`{"a": "x ${number}"}`)).a, `x ${shown}`);
});

test("a card verification code that is told in words is masked, and other numbers are not", () => {
  for (const text of [
    "CVV 987",
    "cvc: 987",
    "the cvv is 987.",
    "CVV2 code 987",
    "Cvv number 987",
    "invalid cvv '987'",
    "invalid cvv (987)",
    "security code: 987",
    "The card's Security Code is 987.",
    "verification value=987",
    "exp date 987",
    "api key: x987",
  ]) {
    for (const note of [text, text.replaceAll("'", '"'), text.replaceAll(" ", "\n")]) {
      for (const shown of [redact(JSON.stringify({ note })), redact(note)]) {
        assert.doesNotMatch(shown, /987/, note);
      }
    }
  }
  for (const text of [
    '{"code": "987", "promo_code": "987", "security": "987", "verification": "987"}',
    '{"type": "card", "value": "987"}',
    '{"note": "order 987 needs another token"}',
    '{"note": "promo code: 987, security, code 987"}',
    '{"fields": ["amount", "987"]}',
  ]) {
    assert.deepEqual(JSON.parse(redact(text)), JSON.parse(text));
  }
});

/** Secret names, also in the spellings of other services. Most are not in the contract. */
const names = [
  ...["pin", "PIN", "card_pin", "ccnumber", "cc-number", "api_key", "apiKey", "X-Api-Key"],
  ...["access_token", "accessToken", "authorization", "Authorization", "signature"],
  ...["x-service-signature", "track1", "track_2", "trackData", "cvc", "cvc2", "CVV2", "csc"],
  ...["customer_password", "client.secret", "card[cvc]", "card%5Bcvv%5D", "privateKey"],
  ...["cvv", "pan", "token", "auth_token", "full_number", "number", "iban", "exp_month"],
  ...["recipient_iban", "onlinePaymentCryptogram", "delegate_api_key", "accountNumber"],
  ...["cvvCode", "cardcvv", "card_cvc", "cvvcode", "CVVCode", "i_cvv", "icvv", "cardSecurityCode"],
  ...["security_code", "securityCode", "securitycode", "card_code", "verification_value"],
  ...["cardVerificationCode", "cardsecuritycode", "cav2", "cvd", "CVN", "cid", "CSC"],
];
const secret = "s3cret.Value-987";

const shapes: Record<string, (name: string) => string> = {
  JSON: (name) => JSON.stringify({ [name]: secret, status: "kept" }),
  "JSON in lists": (name) => JSON.stringify([{ a: [{ [name]: [{ deep: secret }] }] }]),
  "JSON in a text of JSON": (name) => JSON.stringify({ a: JSON.stringify({ [name]: secret }) }),
  "JSON in JSON in JSON": (name) =>
    JSON.stringify({ a: JSON.stringify({ b: JSON.stringify({ [name]: secret }) }) }),
  "a form in a text of JSON": (name) => JSON.stringify({ raw: `a=1&${name}=${secret}&b=2` }),
  "JSON as a number": (name) => JSON.stringify({ [name]: 987, deep: { [name]: { v: 987 } } }),
  "a name beside its value": (name) => JSON.stringify([{ name, value: secret }]),
  "a type beside its value": (name) => JSON.stringify({ type: name, value: secret }),
  "a label beside its text": (name) => JSON.stringify({ label: name, text: 987 }),
  "a list behind its name": (name) => JSON.stringify({ fields: [name, secret] }),
  "lists of a name and its value": (name) => JSON.stringify({ fields: [[name, 987]] }),
  "a form": (name) => `id=1&${name}=${secret}&status=kept`,
  "a form, at its end": (name) => `status=kept&${name}=${secret}`,
  "JSON that was cut off": (name) => `{"status":"kept","${name}":"${secret}`,
  "JSON that was cut off, with spaces": (name) => `{"${name}" : "${secret}", "status": `,
  "JSON of a list that was cut off": (name) => `{"${name}" : ["x", "${secret}", `,
  "JSON of an object that was cut off": (name) => `{"${name}" : {"x": 1, "y": "${secret}", `,
  "JSON with single quotes": (name) => `{'${name}': '${secret}', 'status': 'kept'}`,
  "escaped JSON": (name) => `body: {\\"${name}\\":\\"${secret}\\",\\"a\\":1`,
  "a quoted value with quotes": (name) => `{"${name}":"x\\"${secret}","status":"kept"`,
  headers: (name) => `Status: kept\r\n${name}: Basic ${secret}\r\nA: b`,
  words: (name) => `refused with ${name} ${secret}, status kept`,
};
const inXml = (name: string) => `<card><${name}>${secret}</${name}></card>`;

for (const [shape, write] of [...Object.entries(shapes), ["XML", inXml] as const]) {
  test(`the value of a secret name is hidden in ${shape}`, () => {
    for (const name of names) {
      if (shape === "XML" && !/^\w+$/.test(name)) continue;
      const shown = redact(write(name));
      assert.doesNotMatch(shown, /s3cret|987/, `${name}: ${shown}`);
      assert.ok(shown.includes(mask), `${name}: ${shown}`);
    }
    // Control: the value of another name is shown.
    assert.match(redact(write("status_note")), /987/);
  });
}

test("card numbers in a form are masked, however their spaces are encoded", () => {
  for (const space of ["", "+", "%20", "%C2%A0", "-", "."]) {
    const shown = redact(`id=1&n=${number.match(/.{4}/g)?.join(space)}&status=kept`);
    assert.ok(!shown.replace(/%20|%C2%A0|\D/g, "").includes(number), shown);
    assert.match(shown, /status=kept/);
  }
});

test("of a text nothing is shown behind a secret's name, and of JSON all else", () => {
  assert.equal(redact("id=1&card%5Bpin%5D=4567&amount=10.10"), `id=1&card${mask}`);
  // A name may hold its value.
  for (const text of ["id=1&cvv%3D123", "id=1&cvv-123", "id=1&cvv.123", "id=1&cvv123"]) {
    assert.equal(redact(text), `id=1&cvv${mask}`);
  }
  assert.equal(redact("the password is hunter"), `the password${mask}`);
  const text = '{"pin":"","cvc":null,"shipping":"a","note":"the token has expired"}';
  assert.deepEqual(JSON.parse(redact(text)), JSON.parse(text));
});

test("what is nested too deep to be walked is masked too", () => {
  const text = `${"[".repeat(200_000)}"${number}"`;
  assert.ok(!redact(text).includes(number));
  assert.ok(!redact(`${text}${"]".repeat(200_000)}`).includes(number));
  const depth = 50_000;
  const deep = `${'{"a":'.repeat(depth)}{"cvv":"${secret}"}${"}".repeat(depth)}`;
  assert.doesNotMatch(redact(deep), /s3cret/);
});

test("each listed name counts as secret, and common names do not", () => {
  for (const name of ["external_id", "status", "amount", "description", "message", "created_at"]) {
    assert.ok(!isSecretName(name), name);
  }
  for (const name of names) {
    const parts = decodeURIComponent(name).split(/[^\w-]+/);
    assert.ok(parts.some(isSecretName), name);
  }
});
