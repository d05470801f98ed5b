import { hash } from "node:crypto";
import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  parse,
  Source,
  validate,
} from "graphql";
import { limits } from "./limits.ts";
import { checkShape, tooComplex } from "./operation-shape.ts";
import { RequestError } from "./request-error.ts";

/** What is known about a document's text: the valid document, or how it was refused. */
export type KnownDocument =
  | { readonly document: DocumentNode; readonly errorsOf?: undefined }
  | { readonly document?: undefined; readonly errorsOf: ErrorsOf };

/** Makes the errors with which a document was refused. */
type ErrorsOf = () => GraphQLError[];

const mebi = 1024 * 1024;

/**
 * The documents of one GraphQL server, parsed and validated, and those that it refused. Keeps the
 * most recently used documents, up to a number of bytes: a parsed document takes thirty times as
 * much memory as its text. Of a refused one only its digest and the errors are kept, so that it
 * costs nothing to refuse it again, whatever data it holds.
 */
export class DocumentCache {
  readonly #documents: BoundedMap<DocumentNode>;
  readonly #refusals: BoundedMap<readonly KeptError[]>;
  readonly #textOf = new WeakMap<DocumentNode, string>();

  /** @param maxDocumentBytes most bytes of documents, with what was compiled from them */
  constructor({ maxDocumentBytes = 32 * mebi, maxRefusalBytes = 4 * mebi } = {}) {
    this.#documents = new BoundedMap(maxDocumentBytes);
    this.#refusals = new BoundedMap(maxRefusalBytes);
  }

  find(text: string): KnownDocument | undefined {
    const document = this.#documents.get(text);
    if (document) return { document };
    const refused = this.#refusals.get(digestOf(text));
    return refused && { errorsOf: errorsOf(text, refused) };
  }

  /** Keeps a valid document. One with inline data is unlikely to be sent again, and is not kept. */
  keep(text: string, document: DocumentNode): void {
    if (hasData.test(text)) return;
    this.#textOf.set(document, text);
    const tokens = document.tokenCount ?? text.length;
    this.#documents.set(text, document, 2 * text.length + tokens * bytesPerToken);
  }

  /** Counts the fields that were compiled from a document; they live as long as it does. */
  addFields(document: DocumentNode, count: number): void {
    const text = this.#textOf.get(document);
    if (text !== undefined) this.#documents.grow(text, document, count * bytesPerField);
  }

  /** Remembers the errors that the client gets for a document. */
  refuse(text: string, errors: readonly GraphQLError[]): KnownDocument {
    const kept = errors.map(({ message, extensions, positions }) => {
      return { message, extensions, positions };
    });
    const bytes = kept.reduce(
      (sum, { message, positions = [] }) =>
        sum + bytesPerError + 2 * message.length + positions.length * bytesPerPosition,
      bytesPerError,
    );
    this.#refusals.set(digestOf(text), kept, bytes);
    return { errorsOf: errorsOf(text, kept) };
  }

  /** The estimated memory of everything that is kept. */
  get bytes(): number {
    return this.#documents.bytes + this.#refusals.bytes;
  }
}

/** Measured with Node 24 and rounded up; a test compares them with the heap. */
const bytesPerToken = 400;
const bytesPerField = 512;
const bytesPerError = 512;
const bytesPerPosition = 64;

/** A string, a number with more digits than any `first`, or a comment, which may hold anything. */
const hasData = /["#]|\d{4}/;

/** The text itself may hold a card number: it is not kept. */
function digestOf(text: string): string {
  return hash("sha256", text, "base64url");
}

/** What is kept of a refused document: neither its text nor its fields. */
type KeptError = Pick<GraphQLError, "message" | "extensions" | "positions">;

function errorsOf(text: string, errors: readonly KeptError[]): ErrorsOf {
  const errorOf = ({ message, extensions, positions }: KeptError): RequestError => {
    const where = positions && { source: new Source(text), positions: [...positions] };
    const error = new RequestError(message, "", where);
    const http = { status: 400, spec: true };
    return Object.assign(error, { extensions: { ...extensions, http } });
  };
  return () => errors.map(errorOf);
}

/** Entries up to a number of bytes; those that were used the longest ago go first. */
class BoundedMap<Value> {
  readonly #max: number;
  readonly #entries = new Map<string, { readonly value: Value; bytes: number }>();
  bytes = 0;

  constructor(maxBytes: number) {
    this.#max = maxBytes;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: string, value: Value, bytes: number): void {
    this.#delete(key);
    this.#entries.set(key, { value, bytes });
    this.bytes += bytes;
    this.#shrink();
  }

  /** Counts more bytes of an entry, if it still has this value. */
  grow(key: string, value: Value, bytes: number): void {
    const entry = this.#entries.get(key);
    if (entry?.value !== value) return;
    entry.bytes += bytes;
    this.bytes += bytes;
    this.#shrink();
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.bytes -= entry.bytes;
  }

  #shrink(): void {
    for (const key of this.#entries.keys()) {
      if (this.bytes <= this.#max) return;
      this.#delete(key);
    }
  }
}

/**
 * Finds the valid document of a text, or the formatted errors with which it is refused. A text that
 * is known from an earlier request is neither parsed nor validated again.
 */
export function createFindDocument(
  schema: GraphQLSchema,
  introspection: boolean,
  formatError: (error: unknown) => GraphQLError,
  documents: DocumentCache,
): (text: string) => KnownDocument {
  return (text) => {
    if (text.length > limits.documentLength) {
      const error = tooComplex(`is longer than ${limits.documentLength} characters`);
      return { errorsOf: errorsOf(text, [error]) };
    }
    const known = documents.find(text);
    if (known) return known;
    let document: DocumentNode;
    try {
      document = parseShort(text);
      checkShape(document, introspection);
    } catch (error) {
      return documents.refuse(text, [formatError(error)]);
    }
    const options = { maxErrors: limits.faults, hideSuggestions: !introspection };
    const errors = validate(schema, document, undefined, options);
    if (errors.length > 0) {
      for (const { extensions } of errors) extensions.code ??= "GRAPHQL_VALIDATION_FAILED";
      return documents.refuse(
        text,
        errors.map((error) => formatError(error)),
      );
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
    const { message } = error as GraphQLError;
    if (!/contains more tha[nt] \d+ tokens/.test(message)) throw error;
    throw tooComplex(`has more than ${limits.tokens} tokens`);
  }
}
