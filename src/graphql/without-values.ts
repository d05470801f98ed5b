import { GraphQLError } from "graphql";

/**
 * The error without the values in its message. GraphQL.js quotes the values that it rejects, even
 * whole input objects: a card number that was sent as a number would appear in the response and in
 * logs. Names of types, fields and variables stay.
 * @param located the same error with its place, which may stand before its message
 */
export function withoutValues(error: GraphQLError, located: GraphQLError): GraphQLError {
  const { originalError: _, http, ...extensions } = { ...error.extensions, ...located.extensions };
  const place = located.message.endsWith(error.message)
    ? located.message.slice(0, -error.message.length)
    : "";
  return new GraphQLError(place + cut(place ? error.message : located.message), {
    ...(located.nodes && { nodes: located.nodes }),
    ...(located.source && { source: located.source }),
    ...(located.positions && { positions: located.positions }),
    ...(located.path && { path: located.path }),
    extensions: {
      code: isSyntaxError(located) ? "GRAPHQL_PARSE_FAILED" : "BAD_USER_INPUT",
      ...extensions,
      ...(http !== undefined && { http }),
    },
  });
}

function isSyntaxError({ message }: GraphQLError): boolean {
  return message.startsWith("Syntax Error: ");
}

/** Names in the schema are short; a field name that the caller made up may fill the document. */
const maxMessageLength = 1_000;

/**
 * A message up to the first phrase of GraphQL.js that introduces a quoted value, in limited length.
 * Phrases are found by plain search: a caller chooses the quoted text, and could choose a long one
 * on which a regular expression is slow.
 */
function cut(message: string): string {
  return withoutQuote(message).slice(0, maxMessageLength);
}

function withoutQuote(message: string): string {
  if (message.startsWith("Syntax Error: ")) {
    return message.slice(0, firstOf(message, [", found ", '"']));
  }
  if (message.startsWith("Value ")) {
    const at = message.lastIndexOf(" does not exist in ");
    if (at >= 0) return `The value${message.slice(at)}`;
  }
  const unfit = firstOf(message, [" cannot represent "]);
  const asked = firstOf(message, ["? Found: "]);
  const found = firstOf(message, [", found: ", ". Found: ", "; found: "]);
  const strange = strangeField(message);
  const end = Math.min(unfit, asked, found, strange);
  if (end === message.length) return message;
  if (end === unfit) return `${message.slice(0, firstOf(message, [":"], end))}.`;
  if (end === strange) return `${message.slice(0, end)} not to include unknown fields.`;
  return `${message.slice(0, end)}${end === asked ? "?" : "."}`;
}

/** Index of the first of these phrases in a text; the text's length if there is none. */
function firstOf(text: string, phrases: readonly string[], from = 0): number {
  const positions = phrases.map((phrase) => text.indexOf(phrase, from)).filter((at) => at >= 0);
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
  if (at === message.length) return at;
  const name = message.slice(at + phrase.length, at + phrase.length + maxNameLength + 1);
  return fieldName.test(name) ? message.length : at;
}

const maxNameLength = 64;
const fieldName = /^[A-Za-z_]\w*"/;
