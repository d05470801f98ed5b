import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import tls from "node:tls";
import type { Address } from "../config/kinds.ts";
import { ConfigError } from "../errors.ts";
import { acceptBacklog } from "../net/connections.ts";
import { closeIdleUntil } from "../net/http1.ts";

/** Opens a listener; resolves with its URL. @throws ConfigError naming the variable */
export async function listen(server: Server, variable: string, address: Address): Promise<string> {
  return listening(variable, address, async ({ host, port }) => {
    server.listen({ port, host, backlog: acceptBacklog });
    await once(server, "listening");
    return url(server, host);
  });
}

/** Runs `open`. @throws ConfigError naming the variable if the address cannot be listened on */
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
    const { host, port } = address;
    const how =
      code === "EADDRINUSE"
        ? `: the port is taken. Set ${variable} to another one, or to ${host}:0 for any that is free`
        : "";
    throw new ConfigError(variable, `cannot listen on ${host}:${port} (${code})${how}`);
  }
}

/** The URL of a listener; for a wildcard address that of loopback. */
function url(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const name = reachable.includes(":") ? `[${reachable}]` : reachable;
  return `${server instanceof tls.Server ? "https" : "http"}://${name}:${port}`;
}

/** Resolves once a closing server is closed. Until then its idle connections are closed. */
export function closed(server: HttpServer): Promise<void> {
  const over = new Promise<void>((resolve) => {
    server.once("close", resolve);
    // The server may be closed already, and emits `close` no more.
    server.getConnections((_, count) => count === 0 && !server.listening && resolve());
  });
  return closeIdleUntil(server, over);
}
