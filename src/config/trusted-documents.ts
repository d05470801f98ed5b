import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { boolean, documentMap, path } from "./values.ts";
import { jsonOf } from "./variable.ts";

/** GraphQL documents by their ids, and whether all others are refused. */
export interface TrustedDocuments {
  readonly documents: ReadonlyMap<string, string>;
  readonly only: boolean;
}

export function readTrustedDocuments(read: Reader): {
  readonly trustedDocuments?: TrustedDocuments;
} {
  const variable = "PERSISTED_DOCUMENTS_FILE";
  const file = read.optional(variable, path);
  const only = read("PERSISTED_ONLY", boolean, "false");
  if (file === undefined && only) {
    throw new ConfigError(variable, "is missing: PERSISTED_ONLY=true allows its documents alone");
  }
  if (file === undefined) return {};
  const map = documentMap.safeParse(jsonOf(variable, file));
  if (map.success) return { trustedDocuments: { documents: new Map(map.data), only } };
  throw new ConfigError(variable, `${file}: accepted is a JSON object of documents by their ids`);
}
