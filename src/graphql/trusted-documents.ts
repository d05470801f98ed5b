import { type GraphQLSchema, parse, validate } from "graphql";
import { ConfigError } from "../errors.ts";
import { RequestError } from "./errors.ts";

/** The documents that the operator has registered. */
export interface TrustedDocumentsOptions {
  /** Their texts by their ids, usually the SHA-256 of the text in hex. */
  readonly documents: ReadonlyMap<string, string>;
  /** Whether all other documents are rejected. */
  readonly only: boolean;
}

/** How a request names its document, by parameters whose types are not known. */
type DocumentParams = Readonly<Partial<Record<"query" | "documentId" | "extensions", unknown>>>;

/**
 * Finds the document of a request: by `documentId`, by `extensions.persistedQuery.sha256Hash`, or
 * by its text. The returned function returns the text to run; undefined for a request that names
 * none.
 * @throws ConfigError at once for a document that does not fit the schema, and later
 * RequestError with PERSISTED_QUERY_NOT_FOUND, PERSISTED_QUERY_NOT_SUPPORTED or
 * PERSISTED_QUERY_ONLY
 */
export function createDocumentOf(
  schema: GraphQLSchema,
  options: TrustedDocumentsOptions = { documents: new Map(), only: false },
): (params: DocumentParams) => string | undefined {
  const { documents, only } = options;
  const byId = new Map([...documents].map(([id, text]) => [bare(id), text]));
  const texts = new Set(documents.values());
  for (const [id, text] of documents) checkDocument(schema, id, text);

  return ({ query, documentId, extensions }) => {
    // Apollo's and urql's form of an id.
    const { persistedQuery } = (extensions ?? {}) as { persistedQuery?: { sha256Hash?: unknown } };
    const id = [documentId, persistedQuery?.sha256Hash].find((one) => typeof one === "string");
    const known = id === undefined ? undefined : byId.get(bare(id));
    if (known !== undefined) return known;
    const text = typeof query === "string" && query !== "" ? query : undefined;
    if (text === undefined) {
      if (id === undefined) return undefined;
      // Apollo's clients look for exactly these messages.
      throw documents.size === 0
        ? new RequestError("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED")
        : new RequestError("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND");
    }
    if (only && !texts.has(text)) {
      throw new RequestError("PersistedQueryOnly", "PERSISTED_QUERY_ONLY");
    }
    return text;
  };
}

function bare(id: string): string {
  return id.replace(/^sha256:/, "");
}

function checkDocument(schema: GraphQLSchema, id: string, text: string): void {
  try {
    const [error] = validate(schema, parse(text));
    if (error) throw error;
  } catch (error) {
    const message = `document ${JSON.stringify(id)}: ${(error as Error).message}`;
    throw new ConfigError("PERSISTED_DOCUMENTS_FILE", message);
  }
}
