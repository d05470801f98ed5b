import type { DescMessage } from "@bufbuild/protobuf";
import { contractFiles } from "../model/contract.ts";
import { isSecret } from "./secret-fields.ts";

/**
 * Whether a member of a body that was not understood is treated as secret: its name is that of a
 * field that the contract marks, in any spelling, or contains a secret word.
 */
export function isSecretName(name: string): boolean {
  if (name.length > maxNameLength) return isSecretName(name.slice(-maxNameLength));
  const words = unescaped(name)
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  if (contractNames.has(words.join(""))) return true;
  return words.some(
    (word, index) =>
      secretWords.has(word) ||
      secretWords.has(`${word}${words[index + 1] ?? ""}`) ||
      verificationCode.test(word),
  );
}

/** A text with its percent escapes decoded; unchanged if they are malformed. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** No real name is longer: of a longer one only the end is checked. */
const maxNameLength = 200;

/** Card verification codes also stand in longer words (`cardcvv`, `CVVCode`). */
const verificationCode = /cvv|cvc|securitycode|cardcode/;

/** Words, or two words in a row, in common names of card data, credentials and signatures. */
const secretWords: ReadonlySet<string> = new Set([
  ...["pan", "ccnumber", "cardnumber", "fullnumber", "accountnumber", "iban"],
  ...["csc", "cid", "cvn", "cvn2", "cvd", "cav", "cav2", "pin", "pinblock", "cryptogram"],
  ...["securitycode", "cardcode", "verificationcode", "verificationvalue"],
  ...["track1", "track2", "track3", "trackdata", "expiry", "expdate", "expmonth", "expyear"],
  ...["token", "accesstoken", "refreshtoken", "jwt", "bearer", "cookie", "authorization"],
  ...["password", "passwd", "pwd", "passphrase", "passcode", "otp", "secret", "credentials"],
  ...["apikey", "accesskey", "privatekey", "secretkey", "delegateapi", "signature"],
]);

/** Every field that the contract marks with `debug_redact`. */
const contractNames: ReadonlySet<string> = new Set(
  contractFiles.flatMap(({ messages }) => messages.flatMap(secretsOf)),
);

function secretsOf({ fields, nestedMessages }: DescMessage): string[] {
  return [
    ...fields.filter(isSecret).map(({ name }) => name.replaceAll("_", "")),
    ...nestedMessages.flatMap(secretsOf),
  ];
}
