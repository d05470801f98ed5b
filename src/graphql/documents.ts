import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
} from "graphql";
import { ByAge } from "../collections/by-age.ts";
import { oncePer } from "../collections/once-per.ts";
import { RequestError, refusalFor } from "./errors.ts";
import { limits } from "./limits.ts";
import { checkShape, tooComplex } from "./operation-limits.ts";
import { type PreparedOperation, prepareOperation } from "./prepared-operation.ts";

interface DocumentsOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  /** Most bytes of documents, with what was compiled from them. */
  readonly maxBytes?: number;
}

/**
 * The documents of one GraphQL server, parsed and validated: a text that is known from an earlier
 * request is neither parsed nor validated again. Keeps those that were used last, up to a number of
 * bytes: a parsed document takes thirty times as much memory as its text.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  /** By their texts. */
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
      throw tooComplex(`is longer than ${limits.documentLength} characters`);
    }
    let kept = this.#kept.get(text);
    if (kept) this.#kept.set(text, kept);
    else kept = this.#add(text);
    const prepared = kept.operationOf(name);
    if (prepared) return prepared;
    const message = "Could not determine what operation to execute.";
    throw new RequestError(message, "OPERATION_RESOLUTION_FAILURE");
  }

  /** A document with inline data is unlikely to be sent again, and is not kept. */
  #add(text: string): Kept {
    const { schema } = this.#options;
    const document = this.#validated(text);
    const preparedOf = oncePer((node: OperationDefinitionNode) =>
      prepareOperation(schema, document, node, (fields) =>
        this.#grow(text, added, fields * bytesPerField),
      ),
    );
    const added: Kept = {
      bytes: 0,
      operationOf(name) {
        const node = getOperationAST(document, name);
        return node ? preparedOf(node) : undefined;
      },
    };
    if (!hasData.test(text)) {
      const tokens = document.tokenCount ?? text.length;
      this.#kept.set(text, added);
      this.#grow(text, added, 2 * text.length + tokens * bytesPerToken);
    }
    return added;
  }

  /** @throws RequestError, or an AggregateError of all for which the document is refused */
  #validated(text: string): DocumentNode {
    const { schema, introspection } = this.#options;
    const document = parsed(text);
    checkShape(document, introspection);
    const options = { maxErrors: limits.faults, hideSuggestions: !introspection };
    for (const rules of [cheapRules, costlyRules]) {
      const errors = validate(schema, document, rules, options);
      if (errors.length === 0) continue;
      throw new AggregateError(
        errors.map((error) => refusalFor(error, "GRAPHQL_VALIDATION_FAILED")),
      );
    }
    return document;
  }

  /** Counts more bytes of a document, if it is still kept. The oldest go beyond the maximum. */
  #grow(text: string, known: Kept, bytes: number): void {
    if (this.#kept.get(text) !== known) return;
    known.bytes += bytes;
    this.bytes += bytes;
    const { maxBytes = 32 * 1024 * 1024 } = this.#options;
    if (this.bytes <= maxBytes) return;
    this.#kept.fromOldest((text, { bytes }) => {
      this.#kept.delete(text);
      this.bytes -= bytes;
      return this.bytes > maxBytes;
    });
  }
}

/** @throws RequestError */
function parsed(text: string): DocumentNode {
  try {
    return parse(text, { maxTokens: limits.tokens });
  } catch (thrown) {
    const error = thrown as GraphQLError;
    const isLong = /contains more tha[nt] \d+ tokens/.test(error.message);
    if (isLong) throw tooComplex(`has more than ${limits.tokens} tokens`);
    throw refusalFor(error, "GRAPHQL_PARSE_FAILED");
  }
}

interface Kept {
  bytes: number;
  /** Finds an operation; undefined if the document has none of that name, or several. */
  operationOf(name: string | null | undefined): PreparedOperation | undefined;
}

/** Measured with Node 24 and rounded up; a test compares them with the heap. */
const bytesPerToken = 400;
const bytesPerField = 512;

/**
 * The rule that compares fields and fragments with each other takes up to a hundred times as long as
 * all others together: only a document that those accept is worth it.
 */
const costlyRules = [OverlappingFieldsCanBeMergedRule];
const cheapRules = specifiedRules.filter((rule) => !costlyRules.includes(rule));

/** A string, a number with more digits than any `first`, or a comment, which may hold anything. */
const hasData = /["#]|\d{4}/;
