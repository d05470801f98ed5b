import type { ErrorCode } from "../../errors.ts";

/** How a call ended, as the conventions have it: undefined where they give no status. */
export function rpcStatusOf(protocol: string, code: ErrorCode | "OK"): string | undefined {
  if (protocol !== "connect") return code;
  return code === "OK" ? undefined : code.toLowerCase();
}

/** The system that a protocol of the RPC edge is part of. */
export function rpcSystemOf(protocol: string): "grpc" | "connectrpc" {
  return protocol === "connect" ? "connectrpc" : "grpc";
}

/** What only the caller did wrong is no failure of the server. */
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
