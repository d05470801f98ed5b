import { AuthFileError } from "../auth/create-authentication.ts";
import { ConfigError } from "../config/config-error.ts";
import { WrongDocumentError } from "../graphql/trusted-documents.ts";
import { TlsFileError } from "../net/tls-files.ts";
import { StoreRefused } from "../stores/sqlite/errors.ts";

/** Makes the error of a file or directory that cannot be used at start a ConfigError. */
export function asConfigError(error: unknown): unknown {
  if (error instanceof AuthFileError || error instanceof TlsFileError) {
    return new ConfigError(error.variable, error.message);
  }
  if (error instanceof WrongDocumentError) {
    return new ConfigError("PERSISTED_DOCUMENTS_FILE", error.message);
  }
  if (error instanceof StoreRefused) return new ConfigError("DATA_DIR", error.message);
  return error;
}
