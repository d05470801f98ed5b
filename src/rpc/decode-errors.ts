import type { DescMessage } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { invalidFields } from "../core/validate.ts";
import { addReason, compressionNotNamed, toConnectError } from "./errors.ts";
import { fieldViolationOf, isUnfitKey, type JsonFault } from "./json-fault.ts";

/**
 * Rewrites, in place, what Connect says of a message that it could not read or write: its text quotes
 * the value that did not fit, and that value may be a card number. What stays is which field it was
 * and what was expected there, in the form of a field that breaks a rule. Bytes that are no message of
 * the type are the caller's mistake (INVALID_ARGUMENT); an answer that could not be written is ours.
 * Other errors are left alone. A compressed message whose compression no header names is INTERNAL, as
 * gRPC has it (doc/compression.md), with the reason by which the gateway knows it as the caller's mistake.
 */
export function withoutValues(error: ConnectError, request: DescMessage): void {
  const { rawMessage, code } = error;
  const fault = jsonFault(rawMessage);
  if (fault) {
    const violation = fieldViolationOf(request, fault);
    if (violation) replace(error, outward(invalidFields([violation])));
    else rewrite(error, Code.InvalidArgument, wholeFault(fault.rest));
  } else if (rawMessage.startsWith("parse binary: ")) {
    rewrite(error, Code.InvalidArgument, "the request is not a message of its type");
  } else if (rawMessage === "received compressed envelope, but do not know how to decompress") {
    rewrite(error, Code.Internal, "a message is flagged as compressed, and no header names how");
    addReason(error, compressionNotNamed);
  } else if (rawMessage === "decompression failed") {
    rewrite(error, Code.InvalidArgument, rawMessage);
  } else if (rawMessage.startsWith("serialize binary: ") || isWrapped(error, code)) {
    rewrite(error, Code.Internal, "internal error");
  }
}

function jsonFault(message: string): JsonFault | undefined {
  const match = /^cannot decode (field|message|oneof|enum) ([\w.]+) from JSON/.exec(message);
  if (!match) return undefined;
  const [where, kind, name] = match as unknown as [string, JsonFault["kind"], string];
  return { kind, name, rest: message.slice(where.length) };
}

/** What is wrong with a request of which no field can be named. */
function wholeFault(rest: string): string {
  const twice = /^: duplicate object key "([A-Za-z_]\w{0,63})"$/.exec(rest);
  if (twice) return `the key "${twice[1]}" is given twice`;
  return isUnfitKey(rest)
    ? "the request has a key that is not a field"
    : "the request is not a JSON object";
}

/** Connect gives an error of the JSON writer its code, and the writer's own text. */
function isWrapped(error: ConnectError, code: Code): boolean {
  return code === Code.Internal && error.cause !== undefined;
}

function outward(error: Error): ConnectError {
  return toConnectError(error, new AbortController().signal, () => {});
}

function replace(error: ConnectError, by: ConnectError): void {
  rewrite(error, by.code, by.rawMessage);
  error.details.push(...by.details);
}

function rewrite(error: ConnectError, code: Code, message: string): void {
  // A stream's error has a reason by now, which is that of its first code.
  error.details.length = 0;
  Object.assign(error, { code, rawMessage: message, message });
}
