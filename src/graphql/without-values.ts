import { GraphQLError } from "graphql";

/**
 * The error without the values in its message. GraphQL.js quotes the values that it rejects, even
 * whole input objects: a card number that was sent as a number would appear in the response and in
 * logs. Names of types, fields and variables stay.
 * @param located the same error with its place
 */
export function withoutValues(error: GraphQLError, located: GraphQLError): GraphQLError {
  const { originalError: _, http, ...extensions } = { ...error.extensions, ...located.extensions };
  const { message, nodes, source, positions, path } = located;
  const isSyntaxError = message.startsWith(syntaxError);
  return new GraphQLError(messageWithoutValues(located), {
    ...{ nodes, source, positions, path },
    extensions: {
      code: isSyntaxError ? "GRAPHQL_PARSE_FAILED" : "BAD_USER_INPUT",
      ...extensions,
      ...(http !== undefined && { http }),
    },
  });
}

const syntaxError = "Syntax Error: ";

/** The message up to the first phrase of GraphQL.js that introduces a value, in limited length. */
export function messageWithoutValues({ message }: GraphQLError): string {
  const place = placeInVariable.exec(message)?.[0] ?? "";
  return place + withoutQuote(message.slice(place.length)).slice(0, maxMessageLength);
}

/** It stands before the message of what is wrong there. */
const placeInVariable = /^Variable "\$\w{1,200}" has invalid value(?: at [.\w[\]]{1,500})?: /;

/** Names in the schema are short; a field name that the caller made up may fill the document. */
const maxMessageLength = 1_000;

/**
 * Phrases are found by plain search: a caller chooses the quoted text, and could choose a long one
 * on which a regular expression is slow.
 */
function withoutQuote(message: string): string {
  if (message.startsWith(syntaxError)) return message.slice(0, firstOf(message, [", found ", '"']));
  if (message.startsWith("Value ")) {
    const at = message.lastIndexOf(" does not exist in ");
    if (at >= 0) return `The value${message.slice(at)}`;
  }
  const value = firstOf(message, [" value: "]);
  const asked = firstOf(message, ["? Found: "]);
  const found = firstOf(message, [", found: ", ". Found: ", "; found: "]);
  const strange = strangeField(message);
  const end = Math.min(value, asked, found, strange);
  if (end === message.length) return message;
  if (end === strange) return `${message.slice(0, end)} not to include unknown fields.`;
  return message.slice(0, end) + (end === value ? " value." : end === asked ? "?" : ".");
}

/** Index of the first of these phrases in a text; the text's length if there is none. */
function firstOf(text: string, phrases: readonly string[]): number {
  const positions = phrases.map((phrase) => text.indexOf(phrase)).filter((at) => at >= 0);
  return Math.min(text.length, ...positions);
}

/**
 * Where a message begins to quote an unknown field that is not a GraphQL name of at most 64
 * characters: such a name is misplaced data rather than a misspelt field. The message's length if
 * it quotes none.
 */
function strangeField(message: string): number {
  const phrase = ' not to include unknown field "';
  const at = firstOf(message, [phrase]);
  const name = message.slice(at + phrase.length).slice(0, 65);
  return at === message.length || /^[A-Za-z_]\w*"/.test(name) ? message.length : at;
}
