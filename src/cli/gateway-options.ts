import { createSecureContext } from "node:tls";
import { type Command, InvalidArgumentError, Option } from "commander";
import { bearerText } from "../auth/caller.ts";
import type { Environment } from "../config/environment.ts";
import * as kinds from "../config/kinds.ts";
import { type ClientTlsOptions, tlsOptions } from "../net/client-tls.ts";
import { wrongUsage } from "./command-error.ts";

/** The address of a running gateway, the credential to send, and the merchant account. */
export interface GatewayOptions {
  readonly url: string;
  readonly keyFile?: string;
  readonly account?: string;
}

export const credentialsHelp = `Who is asking: an API key or a JWT in PAYMENTS_GATEWAY_KEY, or in the file of --key-file or
PAYMENTS_GATEWAY_KEY_FILE. With https, PAYMENTS_GATEWAY_TLS_CA_FILE names the authorities to trust, and
PAYMENTS_GATEWAY_TLS_CERT_FILE and PAYMENTS_GATEWAY_TLS_KEY_FILE the certificate to show (mTLS).`;

/** Adds the options of `GatewayOptions` to a command; `listener` is the option for the address. */
export function addGatewayOptions(
  command: Command,
  listener = urlOption(
    "--url <url>",
    "the gateway's rpc listener",
    "PAYMENTS_GATEWAY_URL",
    "http://127.0.0.1:4001",
  ),
): Command {
  return command
    .addOption(listener)
    .addOption(
      new Option("--key-file <file>", "file that holds an API key or a JWT").env(
        "PAYMENTS_GATEWAY_KEY_FILE",
      ),
    )
    .option(
      "--account <name>",
      "merchant account (default: the usual one)",
      readAs(kinds.accountName),
    );
}

/** An option for a URL, which may also come from an environment variable; empty counts as unset. */
export function urlOption(
  flags: string,
  description: string,
  variable: string,
  fallback: string,
): Option {
  return new Option(flags, description)
    .env(variable)
    .default(fallback)
    .argParser((text: string) => httpUrl(text || fallback));
}

/** Reads an option's value as the configuration reads that of a variable. */
export function readAs<T>({ read, accepts }: kinds.ValueKind<T>): (text: string) => T {
  return (text) => {
    const value = read(text);
    if (value !== undefined) return value;
    throw new InvalidArgumentError(`Accepted is ${accepts}.`);
  };
}

export const wholeNumber = readAs(kinds.wholeNumber(1, 999_999_999));

/** The URL without slashes at its end. @throws CommandError unless it is an http or https URL */
export function httpUrl(text: string): string {
  const url = URL.parse(text);
  // Errors show the URL.
  if (url?.username || url?.password)
    throw wrongUsage("a URL has no user name and no password here");
  if (url && /^https?:$/.test(url.protocol)) return text.replace(/(?<!\/)\/+$/, "");
  throw wrongUsage(`${JSON.stringify(text)} is not an http or https URL`);
}

/** What to do about a refusal with this reason, if an option or a variable helps. */
export function adviceOn(
  { account }: Pick<GatewayOptions, "account">,
  isUnauthenticated: boolean,
  reason: string | undefined,
): string {
  if (isUnauthenticated) return ": set PAYMENTS_GATEWAY_KEY, or give --key-file";
  return reason === "MERCHANT_ACCOUNT_REFUSED" && account === undefined ? ": give --account" : "";
}

/** The credential to send; undefined when none is given. */
export function credentialOf(keyFile: string | undefined, env: Environment): string | undefined {
  const credential = keyFile ? secretIn(keyFile) : env.PAYMENTS_GATEWAY_KEY;
  if (!credential || bearerText.test(credential)) return credential || undefined;
  throw wrongUsage("the key has invalid characters");
}

/** The secret in a file. @throws CommandError */
export function secretIn(file: string): string {
  try {
    const secret = kinds.valueIn(file);
    if (secret !== "") return secret;
  } catch (error) {
    throw wrongUsage((error as Error).message);
  }
  throw wrongUsage(`${file} is empty`);
}

/**
 * The certificates that the environment names, for a URL of https.
 * @throws CommandError for files that cannot be used
 */
export function tlsOf(url: string, env: Environment): ClientTlsOptions {
  if (!url.startsWith("https:")) return {};
  const [caFile, certFile, keyFile] = ["CA", "CERT", "KEY"].map(
    (name) => env[`PAYMENTS_GATEWAY_TLS_${name}_FILE`] || undefined,
  );
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const missing = certFile === undefined ? "CERT" : "KEY";
    throw wrongUsage(`PAYMENTS_GATEWAY_TLS_${missing}_FILE is missing: a certificate needs both`);
  }
  try {
    const options = tlsOptions({ caFile, certFile, keyFile });
    createSecureContext({ ...options });
    return options;
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    throw wrongUsage(
      `${path ?? "a file"} of PAYMENTS_GATEWAY_TLS_CA_FILE, PAYMENTS_GATEWAY_TLS_CERT_FILE and PAYMENTS_GATEWAY_TLS_KEY_FILE cannot be used (${code})`,
    );
  }
}
