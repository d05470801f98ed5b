import { GraphQLError } from "graphql";

/**
 * GraphQL's messages quote the values that they refuse, whole input objects even: a card number sent
 * as a number, say, would stand in the answer and in every log behind it. Names of types, fields and
 * variables stay, values go.
 */
export function withoutValues(error: GraphQLError, located: GraphQLError): GraphQLError {
  const { originalError: _, http, ...extensions } = { ...error.extensions, ...located.extensions };
  const invalidVariable = invalidVariableMessage(located);
  return new GraphQLError(invalidVariable ?? cut(located.message), {
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
  const message = error.message.replace(/ Did you mean .*\?$/s, "");
  if (message === error.message) return error;
  const { nodes, source, positions, path, extensions } = error;
  return new GraphQLError(message, { nodes, source, positions, path, extensions });
}

function isSyntaxError({ message }: GraphQLError): boolean {
  return message.startsWith("Syntax Error: ");
}

/** `Variable "$input" got invalid value <value> at "input.amount"; <what is wrong with it>` */
function invalidVariableMessage(error: GraphQLError): string | undefined {
  const variable = /^Variable "\$(\w+)" got invalid value /.exec(error.message)?.[1];
  if (variable === undefined) return undefined;
  const why = error.originalError?.message ?? "";
  const before = error.message.slice(0, error.message.length - why.length);
  // The path ends what stands before the reason; its characters are those of names and indices.
  const path = / at "([\w.[\]]{1,500})"; $/.exec(before)?.[1] ?? variable;
  return `Variable "$${variable}" is invalid at "${path}": ${cut(why) || "wrong value"}`;
}

/** Where each of GraphQL's messages quotes a value, and what is left of it. */
const quotes: readonly (readonly [RegExp, string])[] = [
  [/^(Syntax Error: [^"]*?)(?:, found .*|".*)$/s, "$1"],
  [/^Value .*(?= does not exist in )/s, "The value"],
  // A name that GraphQL has no room for is no field that was misspelt, but data at the wrong place.
  [/( not to include unknown field) "(?![A-Za-z_]\w{0,63}").*$/s, "$1s."],
  [/ has invalid value .*$/s, " has an invalid value."],
  [/( cannot represent [^:]*): .*$/s, "$1."],
  [/\? Found: .*$/s, "?"],
  [/(?:, found|\. Found|; found): .*$/s, "."],
];

function cut(message: string): string {
  return quotes.reduce((text, [quote, rest]) => text.replace(quote, rest), message);
}
