import { isMessage } from "@bufbuild/protobuf";
import { ConfigError, GatewayError, reasonOf } from "../errors.ts";
import { Secret } from "../secrets/secret.ts";

/**
 * A value in the form that a log or a trace may hold. Errors lose their messages, which may quote
 * anything; GatewayError and ConfigError keep theirs, which are written to be read. Protobuf
 * messages become the name of their type: who logs one names the fields that the record needs.
 * Bytes, functions and class instances become a short description. Plain objects and arrays keep
 * their shape; strings stay as they are.
 */
export function loggable(value: unknown): unknown {
  return at(value, 0);
}

/** Deeper values are cut: a circular record must not end the process. */
const maxDepth = 10;

function at(value: unknown, depth: number): unknown {
  if (value === null || value === undefined) return value;
  if (typeof value === "bigint") return String(value);
  if (typeof value === "function" || typeof value === "symbol") return `[${typeof value}]`;
  if (typeof value !== "object") return value;
  if (depth > maxDepth) return "[…]";
  if (value instanceof Secret) return String(value);
  if (value instanceof Error) return errorRecord(value, depth);
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((item) => at(item, depth + 1));
  if (isMessage(value)) return `[${value.$typeName}]`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return `[${value.constructor.name}]`;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, at(member, depth + 1)]),
  );
}

/** Members of system errors that name what failed and quote nothing. */
const systemMembers = ["syscall", "hostname", "address", "port"] as const;

function errorRecord(error: Error, depth: number): Record<string, unknown> {
  const members = error as unknown as Record<string, unknown>;
  const record: Record<string, unknown> = { name: error.name };
  if (typeof members.code === "string" || typeof members.code === "number") {
    record.code = members.code;
  }
  if (error instanceof ConfigError) record.message = error.message;
  if (error instanceof GatewayError) {
    record.message = error.message;
    const reason = reasonOf(error)?.reason;
    if (reason !== undefined) record.reason = reason;
    const { storeSaid } = error.details;
    if (storeSaid !== undefined) record.storeSaid = storeSaid;
  }
  if (typeof members.syscall === "string") {
    for (const name of systemMembers) {
      if (members[name] !== undefined) record[name] = at(members[name], depth + 1);
    }
  }
  record.frames = framesOf(error);
  if (error.cause !== undefined) record.cause = at(thrown(error.cause), depth + 1);
  if (error instanceof AggregateError) {
    record.errors = error.errors.slice(0, 10).map((inner) => at(thrown(inner), depth + 1));
  }
  return record;
}

/** A thrown string may quote anything, like an error's message. */
function thrown(value: unknown): unknown {
  return value instanceof Error || typeof value === "object" ? value : `[${typeof value}]`;
}

/**
 * An error's stack frames. The stack begins with the message: none of it may pass for a frame. If the
 * message was changed afterwards, the stack still has the former one, and no frames are returned.
 */
function framesOf({ stack = "", message }: Error): string[] {
  const start = stack.indexOf(message);
  if (start < 0) return [];
  return stack
    .slice(start + message.length)
    .split("\n")
    .filter((line) => frame.test(line))
    .map((line) => line.trim());
}

const frame = /^ {4}at .{0,500}(?::\d+:\d+\)?|<anonymous>\)?|\(native\)|\(index \d+\))$/;
