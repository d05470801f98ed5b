import { type FieldViolation, type GatewayError, textOfFields } from "../errors.ts";
import { contractFiles } from "../model/contract.ts";

/** Rewrites proto field names in a text to the names that the callers of an edge use. */
export type Spelling = (text: string) => string;

/** Field names of GraphQL arguments and inputs, in a path or within a sentence. */
export const graphqlSpelling: Spelling = (text) =>
  text.replace(/[a-z0-9_]+/g, (word) => names.get(word) ?? word);

/** Field names of the query parameters of `/watch`. */
export const watchSpelling: Spelling = (text) => text.replace(/\bafter_cursor\b/g, "after");

/** Rewrites the rejected fields of a request: `toPath` converts paths, `spelling` messages. */
export function spelled(
  fields: readonly FieldViolation[],
  spelling: Spelling,
  toPath: (path: string) => string = spelling,
): FieldViolation[] {
  return fields.map(({ path, message }) => ({ path: toPath(path), message: spelling(message) }));
}

/** The message of an error. One that lists its fields is written anew from `fields`. */
export function messageOf(error: GatewayError, fields: readonly FieldViolation[]): string {
  const isMadeOfThem = error.details.reason === "INVALID_FIELDS" && fields.length > 0;
  return isMadeOfThem ? textOfFields(fields) : error.message;
}

const names = new Map<string, string>();
for (const file of contractFiles) {
  for (const { fields, oneofs } of file.messages) {
    for (const { name, localName } of [...fields, ...oneofs]) names.set(name, localName);
  }
}
names.set("after_cursor", "after");
names.set("page_token", "after");
