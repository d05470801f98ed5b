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

function errorRecord(error: Error, depth: number): object {
  const { code, syscall, hostname, address, port } = error as Error & Record<string, unknown>;
  const ofGateway = error instanceof GatewayError ? error : undefined;
  const record = {
    name: error.name,
    code: typeof code === "string" || typeof code === "number" ? code : undefined,
    message: ofGateway || error instanceof ConfigError ? error.message : undefined,
    reason: ofGateway && reasonOf(ofGateway)?.reason,
    storeSaid: ofGateway?.details.storeSaid,
    // Of a system error: what failed. They quote nothing.
    ...(typeof syscall === "string" && (at({ syscall, hostname, address, port }, depth) as object)),
  };
  const { cause } = error;
  const errors = error instanceof AggregateError ? error.errors.slice(0, 10) : undefined;
  return {
    ...Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)),
    frames: framesOf(error),
    ...(cause !== undefined && { cause: at(thrown(cause), depth + 1) }),
    ...(errors && { errors: errors.map((inner) => at(thrown(inner), depth + 1)) }),
  };
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
