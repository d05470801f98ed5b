import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
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
  const [leaf] = certificates("TLS_CERT_FILE", cert);
  if (!leaf?.checkPrivateKey(privateKey(key))) {
    throw new ConfigError(
      "TLS_KEY_FILE",
      "is not the key of the first certificate in TLS_CERT_FILE",
    );
  }
  if (ca !== undefined) certificates("TLS_CLIENT_CA_FILE", ca);
  try {
    createSecureContext({ ...identity });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ConfigError("TLS_CERT_FILE", `cannot be used (${code ?? message})`);
  }
  return identity;
}

/**
 * The certificates in a PEM text. OpenSSL would read a text without one as an empty list of
 * authorities, which rejects every client.
 * @throws ConfigError if there is none, or one is malformed
 */
function certificates(variable: string, text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new ConfigError(variable, "has no PEM certificate");
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new ConfigError(variable, `its certificate ${index + 1} is not well-formed`);
    }
  });
}

function privateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new ConfigError("TLS_KEY_FILE", "has no PEM private key without a passphrase");
  }
}
