import type { Command } from "commander";
import { Agent, request } from "undici";
import type { Refusal } from "../admin/console-api.ts";
import type { Environment } from "../config/environment.ts";
import { CommandError, exitCodes, interruption } from "./command-error.ts";
import {
  accountAdvice,
  addGatewayOptions,
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
    if (status === 503)
      throw new CommandError("the event store is out of reach", exitCodes.unavailable);
    if (status === 500)
      throw new CommandError(`${adminUrl} failed (500): the gateway's log says why`);
    if (status === 400 || status === 401 || status === 403) {
      const { error: said = "a key with the scope admin is required", reason } = (body ??
        {}) as Partial<Refusal>;
      const advice =
        status === 401
          ? ": set PAYMENTS_GATEWAY_KEY, or give --key-file"
          : accountAdvice(options, reason);
      throw new CommandError(`the admin listener refuses (${status}): ${printable(said)}${advice}`);
    }
    // 422: a replay that failed, whose body says why.
    if (body === undefined || ![200, 422].includes(status)) throw notAnAdminListener(adminUrl);
    return body as T;
  };
}

/** More than a page of dead letters, or one letter, takes. */
const maxBytes = 16 * 1024 * 1024;

export function notAnAdminListener(adminUrl: string): CommandError {
  return new CommandError(`${adminUrl} answers, but not as a gateway's admin listener does`);
}
