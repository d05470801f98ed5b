import { hash } from "node:crypto";
import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
  Source,
  validate,
} from "graphql";
import { ByAge } from "../collections/by-age.ts";
import { oncePer } from "../collections/once-per.ts";
import { limits } from "./limits.ts";
import { checkShape, tooComplex } from "./operation-shape.ts";
import { type PreparedOperation, prepareOperation } from "./prepared-operation.ts";
import { RequestError } from "./request-error.ts";

export interface DocumentsOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly formatError: (error: unknown) => GraphQLError;
  /** Most bytes of documents, with what was compiled from them, and of refusals. */
  readonly maxBytes?: number;
}

/**
 * The documents of one GraphQL server, parsed and validated, and those that it refused: a text that
 * is known from an earlier request is neither parsed nor validated again. Keeps those that were used
 * last, up to a number of bytes: a parsed document takes thirty times as much memory as its text. Of
 * a refused one only its digest and its errors are kept, whatever data it holds.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  /** Documents by their texts, refusals by the digests of theirs. */
  readonly #kept = new ByAge<Kept>();
  /** The estimated memory of everything that is kept. */
  bytes = 0;

  constructor(options: DocumentsOptions) {
    this.#options = options;
  }

  /**
   * The operation that a request asks for.
   * @param name of the operation, if there are several
   * @throws RequestError, or an AggregateError of all for which the document is refused
   */
  find(text: string, name: string | null | undefined): PreparedOperation {
    if (text.length > limits.documentLength) {
      throw tooComplex(`is longer than ${limits.documentLength} characters`, true);
    }
    const known = this.#get(text) ?? this.#get(digestOf(text)) ?? this.#add(text);
    if (typeof known === "string") throw new AggregateError(errorsOf(text, known));
    const prepared = known(name);
    if (prepared) return prepared;
    const message = "Could not determine what operation to execute.";
    throw new RequestError(message, "OPERATION_RESOLUTION_FAILURE");
  }

  /** A new document, or the errors with which it is refused, as JSON. */
  #add(text: string): OperationOf | string {
    const { schema, introspection, formatError } = this.#options;
    let errors: readonly GraphQLError[];
    try {
      const parsed = parseShort(text);
      checkShape(parsed, introspection);
      const options = { maxErrors: limits.faults, hideSuggestions: !introspection };
      errors = validate(schema, parsed, undefined, options);
      if (errors.length === 0) return this.#addValid(text, parsed);
      for (const { extensions } of errors) extensions.code ??= "GRAPHQL_VALIDATION_FAILED";
    } catch (error) {
      errors = [error as GraphQLError];
    }
    const kept = errors.map(formatError).map(({ message, extensions: { code }, positions }) => {
      return { message, code, positions };
    });
    const refusal = JSON.stringify(kept);
    this.#keep(digestOf(text), refusal, bytesPerEntry + 2 * refusal.length);
    return refusal;
  }

  /** A document with inline data is unlikely to be sent again, and is not kept. */
  #addValid(text: string, parsed: DocumentNode): OperationOf {
    const document = operationsOf(this.#options.schema, parsed, (fields) =>
      this.#grow(text, document, fields * bytesPerField),
    );
    if (!hasData.test(text)) {
      const tokens = parsed.tokenCount ?? text.length;
      this.#keep(text, document, 2 * text.length + tokens * bytesPerToken);
    }
    return document;
  }

  #get(key: string): Kept["known"] | undefined {
    const kept = this.#kept.get(key);
    if (kept) this.#kept.set(key, kept);
    return kept?.known;
  }

  #keep(key: string, known: Kept["known"], bytes: number): void {
    this.#kept.set(key, { known, bytes: 0 });
    this.#grow(key, known, bytes);
  }

  /** Counts more bytes of what is known, if it is still kept. The oldest go beyond the maximum. */
  #grow(key: string, known: Kept["known"], bytes: number): void {
    const kept = this.#kept.get(key);
    if (kept?.known !== known) return;
    kept.bytes += bytes;
    this.bytes += bytes;
    const { maxBytes = 32 * 1024 * 1024 } = this.#options;
    if (this.bytes <= maxBytes) return;
    this.#kept.fromOldest((key, { bytes }) => {
      this.#kept.delete(key);
      this.bytes -= bytes;
      return this.bytes > maxBytes;
    });
  }
}

interface Kept {
  /** A refusal is its errors as JSON, which holds on to nothing of the text that they quote. */
  readonly known: OperationOf | string;
  bytes: number;
}

/** Finds an operation of a document; undefined if it has none of that name, or several. */
type OperationOf = (name: string | null | undefined) => PreparedOperation | undefined;

/** A valid document, with what is worked out about each of its operations. */
function operationsOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  onFields: (count: number) => void,
): OperationOf {
  const preparedOf = oncePer((node: OperationDefinitionNode) =>
    prepareOperation(schema, document, node, onFields),
  );
  return (name) => {
    const node = getOperationAST(document, name);
    return node ? preparedOf(node) : undefined;
  };
}

/** Measured with Node 24 and rounded up; a test compares them with the heap. */
const bytesPerToken = 400;
const bytesPerField = 512;
const bytesPerEntry = 512;

/** A string, a number with more digits than any `first`, or a comment, which may hold anything. */
const hasData = /["#]|\d{4}/;

/** The text itself may hold a card number: it is not kept. No document begins with a colon. */
function digestOf(text: string): string {
  return `:${hash("sha256", text, "base64url")}`;
}

/** What is kept of an error. */
interface KeptError extends Pick<GraphQLError, "message" | "positions"> {
  readonly code: string;
}

function errorsOf(text: string, refusal: string): RequestError[] {
  return (JSON.parse(refusal) as KeptError[]).map(({ message, code, positions }) => {
    const where = positions && { source: new Source(text), positions };
    return new RequestError(message, code, { ofGraphql: true, ...where });
  });
}

/** @throws GraphQLError with OPERATION_TOO_COMPLEX for a document of too many tokens */
function parseShort(text: string): DocumentNode {
  try {
    return parse(text, { maxTokens: limits.tokens });
  } catch (error) {
    const { message } = error as GraphQLError;
    if (!/contains more tha[nt] \d+ tokens/.test(message)) throw error;
    throw tooComplex(`has more than ${limits.tokens} tokens`);
  }
}
