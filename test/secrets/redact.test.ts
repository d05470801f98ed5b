import assert from "node:assert/strict";
import { test } from "node:test";
import { mask, redact } from "../../src/secrets/redact.ts";

const number = "4111111111111111";
const shown = "411111******1111";

/** A JSON body without its white space. */
const compact = (text: string) => redact(text).replace(/\s+/g, "");

test("JSON is indented, and its numbers keep their digits", () => {
  const text = '{"amount":10.10,"fc_id":9007199254740993,"fee":1e-7,"products":[1.0,null,true]}';
  assert.equal(compact(text), text);
  assert.match(redact('{"amount":1}'), /^\{\n {2}"amount": 1\n\}$/);
});

test("only values under names of the contract are shown, however they are wrapped and spelt", () => {
  assert.deepEqual(
    JSON.parse(
      redact(
        JSON.stringify({
          data: { externalId: "order-1", details: [{ status: "success" }], strange: "x" },
          version: 7,
          ok: true,
          none: null,
          empty: "",
        }),
      ),
    ),
    {
      data: { externalId: "order-1", details: [{ status: "success" }], strange: mask },
      version: mask,
      ok: true,
      none: null,
      empty: "",
    },
  );
});

test("card numbers are masked under every name, and in names", () => {
  for (const text of [
    `{"description": ${number}}`,
    `{"description": "paid with ${number}!"}`,
    '{"description": "4111 1111 1111 1111"}',
    `{"details": [{"description": ["${number}"]}]}`,
    `{"${number}": 1}`,
    '{"description": "\\u0034111111111111111"}',
    `"${number}"`,
    number,
    `not json: ${number}`,
    `{"description": "${number}`,
  ]) {
    assert.ok(!redact(text).replace(/[ -]/g, "").includes(number), text);
  }
  assert.equal(JSON.parse(redact(`{"description": "x ${number}"}`)).description, `x ${shown}`);
});

test("a text that may tell a secret in words is not shown, and others are", () => {
  for (const text of [
    "CVV 987",
    "cvc: 987",
    "CVV2 code 987",
    "invalid cvv (987)",
    "security code: 987",
    "The card's Security Code is 987.",
    "verification value=987",
    "exp date 987",
    "api key: x987",
    '{"cardPin":"987"}',
    '{"a":"{\\"card_cvc\\":\\"987\\"}"}',
    "a=1&pin=987",
    "token s3cret.987",
  ]) {
    assert.deepEqual(JSON.parse(redact(JSON.stringify({ payload: text }))), { payload: mask });
  }
  const texts = {
    description: "order 987, shipping to Panama",
    message: "the token has expired",
    payload: '{"cart":5}',
    status_description: "Недостатньо коштів",
    status_code: "3ds_required",
    receipt_url: "https://pay.example/receipts/5",
  };
  assert.deepEqual(JSON.parse(redact(JSON.stringify(texts))), texts);
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
  "JSON in lists": (name) => JSON.stringify([{ status: [{ [name]: [{ code: secret }] }] }]),
  "JSON in a text of JSON": (name) => JSON.stringify({ a: JSON.stringify({ [name]: secret }) }),
  "JSON as a number": (name) => JSON.stringify({ [name]: 987, status: { [name]: { v: 987 } } }),
  "a name beside its value": (name) => JSON.stringify([{ name, value: secret }]),
  "a type beside its value": (name) => JSON.stringify({ type: name, value: secret }),
  "a list behind its name": (name) => JSON.stringify({ fields: [name, secret] }),
  "a form": (name) => `id=1&${name}=${secret}&status=kept`,
  "JSON that was cut off": (name) => `{"status":"kept","${name}":"${secret}`,
  XML: (name) => `<card><${name}>${secret}</${name}></card>`,
};

for (const [shape, write] of Object.entries(shapes)) {
  test(`the value of a secret name is hidden in ${shape}`, () => {
    for (const name of names) {
      const shown = redact(write(name));
      assert.doesNotMatch(shown, /s3cret|987/, `${name}: ${shown}`);
    }
  });
}

test("a body that is not JSON, or nested too deep to be walked, is not shown", () => {
  assert.match(redact("id=1&status=kept"), /^\[16 characters that are not JSON/);
  const text = `${"[".repeat(200_000)}"${number}"`;
  assert.match(redact(`${text}${"]".repeat(200_000)}`), /^\[400018 characters/);
  const depth = 50_000;
  const deep = `${'{"a":'.repeat(depth)}{"cvv":"${secret}"}${"}".repeat(depth)}`;
  assert.doesNotMatch(redact(deep), /s3cret/);
});
