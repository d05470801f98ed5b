import { GraphQLError } from "graphql";

/**
 * The error without the values in its message. GraphQL.js quotes the values that it rejects, even
 * whole input objects: a card number that was sent as a number would appear in the response and in
 * logs. Names of types, fields and variables stay.
 */
export function withoutValues(error: GraphQLError): GraphQLError {
  const { nodes, source, positions, path, extensions } = error;
  return new GraphQLError(messageWithoutValues(error), {
    ...{ nodes, source, positions, path },
    extensions: { code: "BAD_USER_INPUT", ...extensions },
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

/** A syntax error quotes a part of the document behind these. */
const quotedSyntax = /, found |"/;

/** What introduces a value in the other messages, and what ends the message in its place. */
const quotes: readonly (readonly [introduction: RegExp, ending: string])[] = [
  [/ value: /, " value."],
  [/\? Found: /, "?"],
  [/[,;.] [Ff]ound: /, "."],
  // A name of another form, or a longer one, is misplaced data rather than a misspelt field.
  [/ not to include unknown field "(?![A-Za-z_]\w{0,63}")/, " not to include unknown fields."],
];

function withoutQuote(message: string): string {
  if (message.startsWith(syntaxError)) return message.split(quotedSyntax, 1)[0] ?? "";
  if (message.startsWith("Value ")) {
    const at = message.lastIndexOf(" does not exist in ");
    if (at >= 0) return `The value${message.slice(at)}`;
  }
  let [end, ending] = [message.length, ""];
  for (const [introduction, itsEnding] of quotes) {
    const at = message.search(introduction);
    if (at >= 0 && at < end) [end, ending] = [at, itsEnding];
  }
  return message.slice(0, end) + ending;
}
