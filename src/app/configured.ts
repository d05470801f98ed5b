import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { AuthFileError, createAuthentication } from "../auth/create-authentication.ts";
import { createWatchTokens, type WatchTokens } from "../auth/watch-token.ts";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import {
  createGraphqlServer,
  type GraphqlServer,
  type GraphqlServerOptions,
} from "../graphql/server.ts";
import { WrongDocumentError } from "../graphql/trusted-documents.ts";
import { openTlsFiles, TlsFileError, type TlsFiles, type TlsIdentity } from "../net/tls-files.ts";
import type { SandboxOptions } from "../sandbox/options.ts";
import { startSandbox } from "../sandbox/server.ts";
import { deriveKeyring, type Keyring } from "../secrets/keyring.ts";
import { Secret } from "../secrets/secret.ts";
import { authObserver, tlsObserver } from "../telemetry/observers.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import { listening } from "./listening.ts";

/** The GraphQL edge; documents that it cannot run are a wrong configuration. */
export function graphqlServer(options: GraphqlServerOptions): GraphqlServer {
  try {
    return createGraphqlServer(options);
  } catch (error) {
    if (!(error instanceof WrongDocumentError)) throw error;
    throw new ConfigError("PERSISTED_DOCUMENTS_FILE", error.message);
  }
}

/** The sandbox inside the process. */
export async function startEmulator(config: Config, log: Logger, sandbox: Partial<SandboxOptions>) {
  const account = config.accounts.get("default");
  if (!account) throw new ConfigError("MERCHANTS_FILE", "the sandbox has the account default only");
  const { host, port } = config.sandboxAddress ?? { host: "127.0.0.1", port: 0 };
  const { login, password } = account;
  return listening("SANDBOX_ADDR", { host, port }, () =>
    startSandbox({
      host,
      port,
      login,
      password,
      log: (record) => log.debug({ sandbox: record }, "sandbox"),
      ...sandbox,
    }),
  );
}

/** What seals stored secrets, by account. */
export async function deriveKeyrings(
  accounts: readonly MerchantAccount[],
): Promise<ReadonlyMap<string, Keyring>> {
  const derived = accounts.map(async ({ name, password, previousPasswords }) => {
    const keyring = await deriveKeyring(name, [password, ...previousPasswords]);
    return [name, keyring] as const;
  });
  return new Map(await Promise.all(derived));
}

/** In sandbox mode a secret of this process will do; a real deployment shares one over its replicas. */
export function createWatchTokensOf(config: Config) {
  const { watchTokenSecret, watchTokenPreviousSecrets, sandboxAddress } = config;
  if (watchTokenSecret) return createWatchTokens(watchTokenSecret, watchTokenPreviousSecrets);
  if (!sandboxAddress) return undefined;
  return createWatchTokens(new Secret(randomBytes(32).toString("base64url")));
}

/** A file of keys that is wrong is a wrong configuration; one that goes wrong later is only told of. */
export function authenticationOf(
  { auth, accounts }: Config,
  watchTokens: WatchTokens | undefined,
  log: Logger,
) {
  try {
    return createAuthentication({
      ...auth,
      accounts: new Set(accounts.keys()),
      watchTokens,
      observer: authObserver(log),
    });
  } catch (error) {
    if (error instanceof AuthFileError) throw new ConfigError(error.variable, error.message);
    throw error;
  }
}

/** The same is so of the files of TLS. */
export function tlsFilesOf(
  { tls }: Config,
  log: Logger,
  renew: (identity: TlsIdentity) => void,
): TlsFiles | undefined {
  try {
    return tls && openTlsFiles({ paths: tls, ...tlsObserver(log, renew) });
  } catch (error) {
    if (error instanceof TlsFileError) throw new ConfigError(error.variable, error.message);
    throw error;
  }
}
