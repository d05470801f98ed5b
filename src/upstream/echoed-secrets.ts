import type { DescMessage, Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/**
 * Returns a function that redacts the values of the request's `debug_redact` fields in a text from
 * the payments service: an error message that quotes a cvv or a cryptogram would carry it into logs
 * and answers.
 */
export function hideSecretsOf(schema: DescMessage, request: Message): (text: string) => string {
  const secrets = new Set<string>();
  collect(reflect(schema, request), secrets);
  // The longest first: one secret may be a part of another.
  const byLength = [...secrets].sort((a, b) => b.length - a.length);
  return (text) => byLength.reduce(hide, text);
}

function collect(message: ReflectMessage, secrets: Set<string>): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const secret = field.proto.options?.debugRedact === true;
    if (field.fieldKind === "message") {
      collect(message.get(field), secrets);
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) collect(item as ReflectMessage, secrets);
    } else if (field.fieldKind === "scalar" && secret) {
      const value: unknown = message.get(field);
      if (typeof value === "string" && value.length >= minLength) {
        secrets.add(value);
        // A quoted request body contains the JSON-escaped value: an Apple Pay token is JSON itself.
        secrets.add(JSON.stringify(value).slice(1, -1));
      }
    }
  }
}

/** Shorter values would redact half of any text, and reveal nothing by themselves. */
const minLength = 3;

/**
 * Redacts a secret; one of up to 4 characters only where no digit adjoins it, since a cvv inside a
 * longer number reveals nothing.
 */
function hide(text: string, secret: string): string {
  let result = "";
  let from = 0;
  for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, from)) {
    const end = at + secret.length;
    const alone = secret.length > 4 || !(isDigit(text[at - 1]) || isDigit(text[end]));
    result += text.slice(from, at) + (alone ? "[redacted]" : secret);
    from = end;
  }
  return result + text.slice(from);
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= "0" && character <= "9";
}
