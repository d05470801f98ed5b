import type { TlsPaths } from "../net/tls-files.ts";
import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { path } from "./values.ts";

/** Reads the rpc listener's TLS files, if any. @throws ConfigError if one of the pair is missing */
export function readTls(read: Reader): { readonly tls?: TlsPaths } {
  const certFile = read.optional("TLS_CERT_FILE", path);
  const keyFile = read.optional("TLS_KEY_FILE", path);
  const clientCaFile = read.optional("TLS_CLIENT_CA_FILE", path);
  if (!certFile && !keyFile && !clientCaFile) return {};
  if (certFile && keyFile) {
    return { tls: { certFile, keyFile, ...(clientCaFile ? { clientCaFile } : {}) } };
  }
  const missing = certFile ? "TLS_KEY_FILE" : "TLS_CERT_FILE";
  throw new ConfigError(missing, "is missing: TLS needs both TLS_CERT_FILE and TLS_KEY_FILE");
}
