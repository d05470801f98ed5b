import type { DescMessage, Message } from "@bufbuild/protobuf";
import { splitSecrets } from "../secrets/secret-fields.ts";

/**
 * Returns a function that redacts the values of the request's `debug_redact` fields, and those of the
 * merchant's login, in a text from the payments service: an error message or a description that
 * quotes a cvv or a cryptogram would carry it into logs, stores and answers.
 */
export function hideSecretsOf(
  schema: DescMessage,
  request: Message,
  login: readonly string[] = [],
): (text: string) => string {
  const secrets = new Set<string>();
  collect([splitSecrets(schema, request).secrets, login], secrets);
  // The longest first: one secret may be a part of another.
  const byLength = [...secrets].sort((a, b) => b.length - a.length);
  // The merchant's own words come back as they were: an order's number may equal a cvv.
  const { description } = request as { description?: unknown };
  return (text) => (text === description ? text : byLength.reduce(hide, text));
}

/** Collects all texts in a message that holds only secrets. */
function collect(value: unknown, secrets: Set<string>, name?: string): void {
  if (typeof value === "object" && value !== null) {
    for (const [name, below] of Object.entries(value)) collect(below, secrets, name);
  } else if (typeof value === "string" && value.length >= minLength && !ofShape.has(name)) {
    secrets.add(value);
    // A quoted request body contains the JSON-escaped value: an Apple Pay token is JSON itself.
    secrets.add(JSON.stringify(value).slice(1, -1));
  }
}

/** What protobuf-es adds to a message's own values. */
const ofShape: ReadonlySet<string | undefined> = new Set(["$typeName", "case"]);

/** Shorter values would redact half of any text, and reveal nothing by themselves. */
const minLength = 3;

/**
 * Redacts a secret; one of up to 4 characters only where no digit adjoins it, since a cvv inside a
 * longer number reveals nothing.
 */
function hide(text: string, secret: string): string {
  if (secret.length > 4) return text.replaceAll(secret, redacted);
  return text.replaceAll(secret, (found, at: number) =>
    /\d/.test(`${text[at - 1]} ${text[at + secret.length]}`) ? found : redacted,
  );
}

const redacted = "[redacted]";
