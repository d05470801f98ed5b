import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "../config/config-error.ts";
import type { Address } from "../config/values.ts";
import { acceptBacklog } from "../net/connections.ts";

/** Opens a listener; resolves with its address. @throws ConfigError naming the variable */
export async function listen(server: Server, variable: string, address: Address): Promise<string> {
  return listening(variable, address, async ({ host, port }) => {
    server.listen({ port, host, backlog: acceptBacklog });
    await once(server, "listening");
    return url(host, (server.address() as AddressInfo).port);
  });
}

/** An address that cannot be listened on is a wrong configuration. */
export async function listening<T>(
  variable: string,
  address: Address,
  open: (address: Address) => Promise<T>,
): Promise<T> {
  try {
    return await open(address);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== "listen" && syscall !== "bind" && syscall !== "getaddrinfo") throw error;
    throw new ConfigError(variable, `cannot listen on ${address.host}:${address.port} (${code})`);
  }
}

/** A wildcard address is reachable on loopback. */
export function url(host: string, port: number, tls = false): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const name = reachable.includes(":") ? `[${reachable}]` : reachable;
  return `${tls ? "https" : "http"}://${name}:${port}`;
}

/** A connection kept alive counts as idle only when its last answer is through. */
export async function closed(server: Server): Promise<void> {
  const sweep = setInterval(() => server.closeIdleConnections(), 25);
  await new Promise<void>((resolve) => {
    server.once("close", resolve);
    // It may have closed before this.
    server.getConnections((_, count) => count === 0 && !server.listening && resolve());
  });
  clearInterval(sweep);
}
