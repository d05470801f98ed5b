import type { Command } from "commander";
import { Agent, request } from "undici";
import type { Refusal } from "../admin/console-api.ts";
import type { Environment } from "../config/environment.ts";
import { CommandError, exitCodes, interruption } from "./command-error.ts";
import {
  addGatewayOptions,
  adviceOn,
  credentialOf,
  type GatewayOptions,
  tlsOf,
  urlOption,
} from "./gateway-options.ts";
import { fetchFault, unreachable } from "./reach.ts";
import { printable } from "./terminal.ts";

export interface AdminOptions extends Omit<GatewayOptions, "url"> {
  readonly adminUrl: string;
}

export const adminHelp = `When the gateway's callers authenticate, PAYMENTS_GATEWAY_KEY (or --key-file) has to hold a key with
the scope admin.`;

/** Adds the options of `AdminOptions` to a command. */
export function addAdminOptions(command: Command): Command {
  const listener = urlOption(
    "--admin-url <url>",
    "the gateway's admin listener",
    "PAYMENTS_GATEWAY_ADMIN_URL",
    "http://127.0.0.1:4002",
  );
  return addGatewayOptions(command, listener);
}

/** Resolves with the parsed JSON body of the answer; undefined where there is nothing (404). */
export type AskAdmin = <T>(
  method: "GET" | "POST" | "DELETE",
  path: string,
) => Promise<T | undefined>;

/**
 * Sends requests to the admin listener.
 * @throws CommandError for a refusal or another failure, for a body that is not JSON, if the listener
 * does not answer within 30 s, or if the command is interrupted
 */
export function createAskAdmin(
  options: AdminOptions,
  env: Environment,
  signal: AbortSignal = interruption(),
): AskAdmin {
  const { adminUrl } = options;
  const credential = credentialOf(options.keyFile, env);
  const connect = { ...tlsOf(adminUrl, env) };
  const dispatcher = new Agent({ connect, maxResponseSize: maxBytes });
  return async <T>(method: string, path: string) => {
    const { statusCode: status, body: answer } = await request(adminUrl + path, {
      ...{ method, dispatcher, reset: true },
      headers: {
        accept: "application/json",
        ...(method === "POST" && { "content-type": "application/json" }),
        ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
    }).catch((error) => {
      signal.throwIfAborted();
      const message = unreachable("the gateway", adminUrl, fetchFault(error), "--admin-url");
      throw new CommandError(message, exitCodes.unavailable);
    });
    const body: unknown = await answer.json().catch(() => undefined);
    if (status === 404) return undefined;
    if (status === 204) return {} as T;
    // 422: a replay that failed, whose body says why.
    if (body && (status === 200 || status === 422)) return body as T;
    const { error, reason } = (body ?? {}) as Partial<Refusal>;
    if (typeof error !== "string") throw notAnAdminListener(adminUrl);
    const advice = adviceOn(options, status === 401, reason);
    throw new CommandError(
      `the admin listener refuses (${status}): ${printable(error)}${advice}`,
      status === 503 ? exitCodes.unavailable : exitCodes.failed,
    );
  };
}

/** More than a page of dead letters, or one letter, takes. */
const maxBytes = 16 * 1024 * 1024;

export function notAnAdminListener(adminUrl: string): CommandError {
  return new CommandError(`${adminUrl} answers, but not as a gateway's admin listener does`);
}
