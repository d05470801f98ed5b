import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { CommandError, exitCodes, wrongUsage } from "./command-error.ts";
import { credentialOf, type GatewayOptions } from "./gateway-options.ts";
import { systemCode, unreachable } from "./reach.ts";
import type { Environment } from "./secrets.ts";
import { printable } from "./terminal.ts";

/** A connection to a running gateway. */
export interface OpenGateway {
  readonly transport: Transport;
  /** Lets the process end. */
  close(): void;
}

/** Opens nothing yet: the first call connects. @throws CommandError for wrong options */
export function openGateway(options: GatewayOptions, env: Environment): OpenGateway {
  const credential = credentialOf(options, env);
  // TCP's own keep-alive finds out within seconds about a connection that went dead without a word.
  const agent = new (options.url.startsWith("https:") ? HttpsAgent : HttpAgent)({
    keepAlive: true,
  });
  return {
    transport: createConnectTransport({
      baseUrl: options.url,
      httpVersion: "1.1",
      nodeOptions: { agent },
      interceptors: [
        (next) => (request) => {
          if (credential) request.header.set("authorization", `Bearer ${credential}`);
          if (options.account) request.header.set("x-merchant-account", options.account);
          return next(request);
        },
      ],
    }),
    close: () => agent.destroy(),
  };
}

/** What went wrong with a call to the gateway, in words that say what to do; other errors as they are. */
export function callError(error: unknown, url: string): unknown {
  if (!(error instanceof ConnectError)) return error;
  const { code, rawMessage, cause } = error;
  const why = systemCode(cause);
  if (why !== undefined) {
    return new CommandError(unreachable("the gateway", url, why, "--url"), exitCodes.unavailable);
  }
  const said = printable(rawMessage);
  // The client's readings of an answer that is not of this protocol.
  if (code === Code.Unimplemented || said === "" || /^(HTTP \d+$|unsupported content)/.test(said)) {
    return new CommandError(
      `${url} answers, but not as a gateway's rpc listener does: give --url`,
      exitCodes.unavailable,
    );
  }
  switch (code) {
    case Code.Unavailable:
      return new CommandError(`not now: ${said}`, exitCodes.unavailable);
    case Code.Unauthenticated:
      return new CommandError(
        `the gateway does not accept the credentials: ${said} (set PAYMENTS_GATEWAY_KEY or give --key-file)`,
      );
    case Code.InvalidArgument:
      return wrongUsage(`the gateway refuses: ${said}`);
    default:
      return new CommandError(`the gateway refuses (${codeName(code)}): ${said}`);
  }
}

/** `FAILED_PRECONDITION` for `Code.FailedPrecondition`. */
export function codeName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
