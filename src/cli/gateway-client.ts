import http from "node:http";
import https from "node:https";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Environment } from "../config/environment.ts";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { systemCode } from "../net/system-errors.ts";
import { CommandError, type ExitCode, exitCodes } from "./command-error.ts";
import { adviceOn, credentialOf, type GatewayOptions, tlsOf } from "./gateway-options.ts";
import { unreachable } from "./reach.ts";
import { printable } from "./terminal.ts";

/**
 * Runs `use` with a connection to a running gateway, which its first call opens.
 * @throws CommandError for wrong options, and for a call that fails, with what to do
 */
export async function onGateway<T>(
  options: GatewayOptions,
  env: Environment,
  use: (transport: Transport) => Promise<T>,
): Promise<T> {
  const credential = credentialOf(options.keyFile, env);
  const { Agent } = options.url.startsWith("https:") ? https : http;
  // TCP keep-alive detects a silently dead connection within seconds.
  const agent = new Agent({ keepAlive: true, ...tlsOf(options.url, env) });
  const transport = createConnectTransport({
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
  });
  try {
    return await use(transport);
  } catch (error) {
    throw callError(error, options);
  } finally {
    // Its open connections would keep the process alive.
    agent.destroy();
  }
}

/** Turns a ConnectError into a CommandError that says what to do; returns others unchanged. */
function callError(error: unknown, options: GatewayOptions): unknown {
  if (!(error instanceof ConnectError)) return error;
  const { code, rawMessage, cause } = error;
  const { url } = options;
  const why = systemCode(cause);
  if (why !== undefined) {
    return new CommandError(unreachable("the gateway", url, why, "--url"), exitCodes.unavailable);
  }
  const said = printable(rawMessage);
  // How the Connect client reports an answer in another protocol.
  if (code === Code.Unimplemented || said === "" || /^(HTTP \d+$|unsupported content)/.test(said)) {
    return new CommandError(
      `${url} answers, but not as a gateway's rpc listener does: give --url`,
      exitCodes.unavailable,
    );
  }
  const [info] = error.findDetails(ErrorInfoSchema);
  const advice = adviceOn(options, code === Code.Unauthenticated, info?.reason);
  const message = `the gateway refuses (${codeName(code)}): ${said}${advice}`;
  return new CommandError(message, exitCodeOf[code] ?? exitCodes.failed);
}

const exitCodeOf: { readonly [Of in Code]?: ExitCode } = {
  [Code.Unavailable]: exitCodes.unavailable,
  [Code.InvalidArgument]: exitCodes.usage,
};

/** `FAILED_PRECONDITION` for `Code.FailedPrecondition`. */
export function codeName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
