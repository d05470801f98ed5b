import type { ErrorCode } from "../../errors.ts";

/** A call's status code by the conventions; undefined for a success by Connect, which has none. */
export function rpcStatusOf(protocol: string, code: ErrorCode | "OK"): string | undefined {
  if (protocol !== "connect") return code;
  return code === "OK" ? undefined : code.toLowerCase();
}

/** The conventions' system name of a protocol of the RPC edge. */
export function rpcSystemOf(protocol: string): "grpc" | "connectrpc" {
  return protocol === "connect" ? "connectrpc" : "grpc";
}

/** Whether a code is a failure of the server, not only a mistake of the caller. */
export function isServerFailure(code: ErrorCode | "OK"): boolean {
  return serverFailures.has(code);
}

const serverFailures: ReadonlySet<string> = new Set<ErrorCode>([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
]);
