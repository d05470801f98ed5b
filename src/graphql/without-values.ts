import { GraphQLError } from "graphql";

/**
 * GraphQL's messages quote the values that they refuse, whole input objects even: a card number sent
 * as a number, say, would stand in the answer and in every log behind it. Names of types, fields and
 * variables stay, values go.
 */
export function withoutValues(error: GraphQLError, located: GraphQLError): GraphQLError {
  const { originalError: _, http, ...extensions } = { ...error.extensions, ...located.extensions };
  return new GraphQLError(cut(located.message), {
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

/** "Did you mean …" tells, guess by guess, the schema to whom introspection does not. */
export function withoutHints(error: GraphQLError): GraphQLError {
  const at = error.message.indexOf(" Did you mean ");
  if (at < 0) return error;
  const message = error.message.slice(0, at);
  const { nodes, source, positions, path, extensions } = error;
  return new GraphQLError(message, { nodes, source, positions, path, extensions });
}

function isSyntaxError({ message }: GraphQLError): boolean {
  return message.startsWith("Syntax Error: ");
}

/** Names of the schema are short; a caller's own name of a field may be as long as the document. */
const maxMessageLength = 1_000;

/**
 * A message up to where it begins to quote a value: behind the first of GraphQL's phrases that do. They
 * are searched for and not matched, since a message is as long as what it quotes, which a caller may
 * fill with whatever takes an expression longest.
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
  const invalid = firstOf(message, [" got invalid value ", " has invalid value "]);
  const unfit = firstOf(message, [" cannot represent "]);
  const asked = firstOf(message, ["? Found: "]);
  const found = firstOf(message, [", found: ", ". Found: ", "; found: "]);
  const strange = strangeField(message);
  const end = Math.min(invalid, unfit, asked, found, strange);
  if (end === message.length) return message;
  if (end === invalid) return `${message.slice(0, end)} has an invalid value.`;
  if (end === unfit) return `${message.slice(0, firstOf(message, [":"], end))}.`;
  if (end === strange) return `${message.slice(0, end)} not to include unknown fields.`;
  return `${message.slice(0, end)}${end === asked ? "?" : "."}`;
}

/** Where the first of these phrases stands; the length of the text if there is none. */
function firstOf(text: string, phrases: readonly string[], from = 0): number {
  const positions = phrases.map((phrase) => text.indexOf(phrase, from)).filter((at) => at >= 0);
  return Math.min(text.length, ...positions);
}

/** A name that GraphQL has no room for is no field that was misspelt, but data at the wrong place. */
function strangeField(message: string): number {
  const phrase = ' not to include unknown field "';
  const at = firstOf(message, [phrase]);
  if (at === message.length) return at;
  const name = message.slice(at + phrase.length, at + phrase.length + maxNameLength + 1);
  return fieldName.test(name) ? message.length : at;
}

const maxNameLength = 64;
const fieldName = /^[A-Za-z_]\w*"/;
