import type { DescMessage } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { invalidFields } from "../core/validate.ts";
import { addReason, compressionNotNamed, outward } from "./errors.ts";
import { fieldViolationOf, isUnfitKey, type JsonFault } from "./json-fault.ts";

/**
 * Rewrites, in place, Connect's error for a message that it could not read or write: its text
 * quotes the value that did not fit, which may be a card number. The new error names only the field
 * and what was expected there, in the form of a field violation. A request that cannot be read is
 * INVALID_ARGUMENT, a response that cannot be written is INTERNAL. A compressed message whose
 * compression no header names is INTERNAL too, as gRPC demands (doc/compression.md), with a reason
 * that marks it as the caller's mistake. Other errors are left alone.
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

/** The error text for a request in which no single field is at fault. */
function wholeFault(rest: string): string {
  const twice = /^: duplicate object key "([A-Za-z_]\w{0,63})"$/.exec(rest);
  if (twice) return `the key "${twice[1]}" is given twice`;
  return isUnfitKey(rest)
    ? "the request has a key that is not a field"
    : "the request is not a JSON object";
}

/** Whether Connect has wrapped an error of the JSON writer, whose text it keeps. */
function isWrapped(error: ConnectError, code: Code): boolean {
  return code === Code.Internal && error.cause !== undefined;
}

function replace(error: ConnectError, by: ConnectError): void {
  rewrite(error, by.code, by.rawMessage);
  error.details.push(...by.details);
}

function rewrite(error: ConnectError, code: Code, message: string): void {
  // A stream's error already has an ErrorInfo with the reason of its first code.
  error.details.length = 0;
  Object.assign(error, { code, rawMessage: message, message });
}
