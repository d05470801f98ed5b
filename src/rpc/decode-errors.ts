import { Code, type ConnectError } from "@connectrpc/connect";

/**
 * Rewrites, in place, what Connect says of a message that it could not read or write: its text quotes
 * the value that did not fit, and that value may be a card number. What stays is which field it was
 * and what was expected there. Bytes that are no message of the type are the caller's mistake
 * (INVALID_ARGUMENT); an answer that could not be written is ours. Other errors are left alone.
 */
export function withoutValues(error: ConnectError): void {
  const { rawMessage, code } = error;
  const where = /^cannot decode (?:field |message |oneof |enum )?[\w.]+ from JSON/.exec(rawMessage);
  if (where) {
    const rest = rawMessage.slice(where[0].length);
    rewrite(error, Code.InvalidArgument, where[0] + (fitToTell.exec(rest)?.[0] ?? ""));
  } else if (rawMessage.startsWith("parse binary: ")) {
    rewrite(error, Code.InvalidArgument, "the request is not a message of its type");
  } else if (rawMessage === "decompression failed") {
    rewrite(error, Code.InvalidArgument, rawMessage);
  } else if (rawMessage.startsWith("serialize binary: ") || isWrapped(error, code)) {
    rewrite(error, Code.Internal, "internal error");
  }
}

/** The parts of an explanation that are the schema's own words, or a name that stands for a field. */
const fitToTell =
  /^: (?:(?:list item #\d+: )?expected [\w .()]+|key "[A-Za-z_]\w{0,63}" is unknown$|(?:oneof )?set multiple times)/;

/** Connect gives an error of the JSON writer its code, and the writer's own text. */
function isWrapped(error: ConnectError, code: Code): boolean {
  return code === Code.Internal && error.cause !== undefined;
}

function rewrite(error: ConnectError, code: Code, message: string): void {
  Object.assign(error, { code, rawMessage: message, message });
}
