import { type DocumentNode, GraphQLError, type GraphQLSchema, parse, validate } from "graphql";
import type { DocumentCache, KnownDocument } from "./document-cache.ts";
import { limits } from "./limits.ts";
import { checkShape, tooComplex } from "./operation-shape.ts";

interface FindDocumentOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly formatError: (error: unknown) => GraphQLError;
  readonly documents: DocumentCache;
}

/**
 * Finds the valid document of a text, or the formatted errors with which it is refused. A text that
 * is known from an earlier request is neither parsed nor validated again.
 */
export type FindDocument = (text: string) => KnownDocument;

export function createFindDocument(options: FindDocumentOptions): FindDocument {
  const { schema, introspection, formatError, documents } = options;
  return (text) => {
    if (text.length > limits.documentLength) {
      const error = tooComplex(`is longer than ${limits.documentLength} characters`);
      return { refused: { outline: undefined, errors: () => [error] } };
    }
    const known = documents.find(text);
    if (known) return known;
    let document: DocumentNode;
    try {
      document = parseShort(text);
      checkShape(document, introspection);
    } catch (error) {
      return { refused: documents.refuse(text, undefined, [formatError(error)]) };
    }
    const options = { maxErrors: limits.faults, hideSuggestions: !introspection };
    const errors = validate(schema, document, undefined, options);
    if (errors.length > 0) {
      for (const { extensions } of errors) extensions.code ??= "GRAPHQL_VALIDATION_FAILED";
      return {
        refused: documents.refuse(
          text,
          document,
          errors.map((error) => formatError(error)),
        ),
      };
    }
    documents.keep(text, document);
    return { document };
  };
}

/** @throws GraphQLError with OPERATION_TOO_COMPLEX for a document of too many tokens */
function parseShort(text: string): DocumentNode {
  try {
    return parse(text, { maxTokens: limits.tokens });
  } catch (error) {
    if (
      !(error instanceof GraphQLError) ||
      !/contains more tha[nt] \d+ tokens/.test(error.message)
    ) {
      throw error;
    }
    throw tooComplex(`has more than ${limits.tokens} tokens`);
  }
}
