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

/** The operation that a request asks for, or the errors with which its document is refused. */
export type FoundOperation =
  | { readonly prepared: PreparedOperation; readonly errors?: undefined }
  | { readonly prepared?: undefined; readonly errors: readonly GraphQLError[] };

export interface DocumentsOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly formatError: (error: unknown) => GraphQLError;
  /** Most bytes of documents, with what was compiled from them. */
  readonly maxDocumentBytes?: number;
  readonly maxRefusalBytes?: number;
}

/**
 * The documents of one GraphQL server, parsed and validated, and those that it refused: a text that
 * is known from an earlier request is neither parsed nor validated again. Keeps those that were used
 * last, up to a number of bytes: a parsed document takes thirty times as much memory as its text. Of
 * a refused one only its digest and its errors are kept, whatever data it holds.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  readonly #documents: BoundedMap<OperationOf>;
  /** The errors as JSON, which holds on to nothing of the text that they quote. */
  readonly #refusals: BoundedMap<string>;

  constructor(options: DocumentsOptions) {
    const { maxDocumentBytes = 32 * mebi, maxRefusalBytes = 4 * mebi } = options;
    this.#options = options;
    this.#documents = new BoundedMap(maxDocumentBytes);
    this.#refusals = new BoundedMap(maxRefusalBytes);
  }

  /** @param name of the operation, if there are several */
  find(text: string, name: string | null | undefined): FoundOperation {
    if (text.length > limits.documentLength) {
      const what = `is longer than ${limits.documentLength} characters`;
      return { errors: [ofDocument(tooComplex(what))] };
    }
    const known =
      this.#documents.get(text) ?? this.#refusals.get(digestOf(text)) ?? this.#add(text);
    if (typeof known === "string") return { errors: errorsOf(text, known) };
    const prepared = known(name);
    return prepared ? { prepared } : { errors: [noSuchOperation()] };
  }

  /** The estimated memory of everything that is kept. */
  get bytes(): number {
    return this.#documents.bytes + this.#refusals.bytes;
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
      if (errors.length === 0) return this.#keep(text, parsed);
      for (const { extensions } of errors) extensions.code ??= "GRAPHQL_VALIDATION_FAILED";
    } catch (error) {
      errors = [error as GraphQLError];
    }
    const kept = errors.map(formatError).map(({ message, extensions, positions }): KeptError => {
      return { message, extensions, positions };
    });
    const refusal = JSON.stringify(kept);
    this.#refusals.set(digestOf(text), refusal, bytesPerEntry + 2 * refusal.length);
    return refusal;
  }

  /** Keeps a valid document. One with inline data is unlikely to be sent again, and is not kept. */
  #keep(text: string, parsed: DocumentNode): OperationOf {
    const document = operationsOf(this.#options.schema, parsed, (fields) =>
      this.#documents.grow(text, document, fields * bytesPerField),
    );
    if (!hasData.test(text)) {
      const tokens = parsed.tokenCount ?? text.length;
      this.#documents.set(text, document, 2 * text.length + tokens * bytesPerToken);
    }
    return document;
  }
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

const mebi = 1024 * 1024;
/** Measured with Node 24 and rounded up; a test compares them with the heap. */
const bytesPerToken = 400;
const bytesPerField = 512;
const bytesPerEntry = 512;

/** A string, a number with more digits than any `first`, or a comment, which may hold anything. */
const hasData = /["#]|\d{4}/;

/** The text itself may hold a card number: it is not kept. */
function digestOf(text: string): string {
  return hash("sha256", text, "base64url");
}

/** What is kept of an error. */
type KeptError = Pick<GraphQLError, "message" | "extensions" | "positions">;

function errorsOf(text: string, refusal: string): RequestError[] {
  return (JSON.parse(refusal) as KeptError[]).map(({ message, extensions, positions }) => {
    const where = positions && { source: new Source(text), positions };
    const error = new RequestError(message, "", where);
    return ofDocument(Object.assign(error, { extensions }));
  });
}

/** See `RequestErrorOptions.ofGraphql`. */
function ofDocument(error: RequestError): RequestError {
  const http = { status: 400, spec: true };
  return Object.assign(error, { extensions: { ...error.extensions, http } });
}

function noSuchOperation(): RequestError {
  const message = "Could not determine what operation to execute.";
  return new RequestError(message, "OPERATION_RESOLUTION_FAILURE", { status: 400 });
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

/** Entries up to a number of bytes; those that were used the longest ago go first. */
class BoundedMap<Value> {
  readonly #max: number;
  readonly #entries = new ByAge<{ readonly value: Value; bytes: number }>();
  bytes = 0;

  constructor(maxBytes: number) {
    this.#max = maxBytes;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry) this.#entries.set(key, entry);
    return entry?.value;
  }

  set(key: string, value: Value, bytes: number): void {
    this.#add(bytes - (this.#entries.set(key, { value, bytes })?.bytes ?? 0));
  }

  /** Counts more bytes of an entry, if it still has this value. */
  grow(key: string, value: Value, bytes: number): void {
    const entry = this.#entries.get(key);
    if (entry?.value !== value) return;
    entry.bytes += bytes;
    this.#add(bytes);
  }

  #add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes <= this.#max) return;
    this.#entries.fromOldest((key, entry) => {
      this.#entries.delete(key);
      this.bytes -= entry.bytes;
      return this.bytes > this.#max;
    });
  }
}
