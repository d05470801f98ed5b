import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { ConfigError } from "../errors.ts";
import type { Tls } from "./one-port.ts";
import { type NamedFile, type ReloadOptions, reloadedFiles } from "./reloaded-files.ts";

/** Paths of a listener's TLS files. */
export interface TlsPaths {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities that must sign clients' certificates; without it, none is asked for. */
  readonly clientCaFile?: string | undefined;
}

export type TlsFiles = ReturnType<typeof openTlsFiles>;

/**
 * Reads a listener's TLS files, and again when they change.
 * @throws ConfigError for files that cannot be used at start
 */
export function openTlsFiles(
  { certFile, keyFile, clientCaFile }: TlsPaths,
  options: ReloadOptions<Tls>,
) {
  const files: NamedFile[] = [
    { variable: "TLS_CERT_FILE", path: certFile },
    { variable: "TLS_KEY_FILE", path: keyFile },
  ];
  if (clientCaFile !== undefined) {
    files.push({ variable: "TLS_CLIENT_CA_FILE", path: clientCaFile });
  }
  const identityOf = ([cert = "", key = "", ca]: readonly string[]): Tls =>
    fitting({ cert, key, ...(ca === undefined ? {} : { ca }) });
  return reloadedFiles(files, identityOf, options);
}

/** Returns the identity if its parts can be used together. @throws ConfigError otherwise */
function fitting(identity: Tls): Tls {
  const { cert, key, ca } = identity;
  certificates("TLS_CERT_FILE", cert);
  if (ca !== undefined) certificates("TLS_CLIENT_CA_FILE", ca);
  try {
    // An empty key would be left out.
    createSecureContext({ cert, key: key || " " });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const wanted = "the PEM key, without a passphrase, of the first certificate in TLS_CERT_FILE";
    throw new ConfigError("TLS_KEY_FILE", `is not ${wanted} (${code ?? message})`);
  }
  return identity;
}

/**
 * Refuses a PEM text that has no certificates. OpenSSL would read it as an empty list of authorities,
 * which rejects every client.
 * @throws ConfigError if there is none, or one is malformed
 */
function certificates(variable: string, text: string): void {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new ConfigError(variable, "has no PEM certificate");
  for (const [index, block] of blocks.entries()) {
    try {
      new X509Certificate(block);
    } catch {
      throw new ConfigError(variable, `its certificate ${index + 1} is not well-formed`);
    }
  }
}
