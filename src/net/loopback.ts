import { isIPv4, isIPv6 } from "node:net";

/** Whether a host name or address is reachable from this machine alone. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  if (isIPv4(bare)) return bare.startsWith("127.");
  if (isIPv6(bare)) return bare === "::1";
  return bare === "localhost" || bare.endsWith(".localhost");
}
