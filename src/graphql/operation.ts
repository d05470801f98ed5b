import type { Caller } from "../auth/caller.ts";
import type { Member } from "../collections/under-way.ts";
import { deadlinePassed } from "../errors.ts";
import type { KindName } from "../model/kinds.ts";
import type { Slot } from "../net/admission.ts";
import type { Span } from "../telemetry/tracing/tracing.ts";
import type { Edge } from "./edge.ts";
import { codeOf, retryAfterSeconds } from "./errors.ts";
import type { Live } from "./live.ts";
import type { Accepted } from "./transport/accept.ts";

/** What an operation is, and what its request says. */
export interface OperationRequest {
  /** Identifies its log records; the client receives it. */
  readonly requestId: string;
  /** Set if it is a plain watch of `/watch`, with what its path names. Default: one of GraphQL. */
  readonly watch?: { readonly kind: KindName | undefined };
  /** What its client takes, by HTTP. */
  readonly accepted?: Accepted;
  /** Transport of a stream. What came by WebSocket is answered by it. */
  readonly streamsBy: "sse" | "multipart" | "websocket";
  readonly span: Span;
  /** The operation's slot among the calls in flight. */
  readonly slot: Slot;
  readonly idempotencyKey?: string | undefined;
  /** Whether the operation is in the URL of a GET. Default: no. */
  readonly isGet?: boolean;
  /**
   * The cursor in the header `Last-Event-ID`. It overrides the argument `after`: an EventSource that
   * reconnects repeats its URL, with the original argument.
   */
  readonly lastEventId?: string | undefined;
  /** The header `Accept-Language`; null if there is none. */
  readonly acceptLanguage: string | null;
  /**
   * @param account the merchant account. Default: the one that the request names, or the caller's own
   * @throws GatewayError when the caller is not known or not allowed.
   */
  readonly authenticate: (account?: string) => Promise<Caller>;
}

/**
 * One operation, or one plain watch, which lasts until its client leaves or its deadline passes. It
 * is recorded in the log, in metrics and as a span: what it asks for, its caller and how it ended.
 */
export class Operation {
  readonly request: OperationRequest;
  /** Set if it is a stream. */
  live: Live | undefined = undefined;
  caller: Caller | undefined = undefined;
  /** Whether a mutation got the outcome of an earlier call with its key. */
  isReplay = false;
  /** Whether it has waited for every field, so that nothing of it still runs. */
  isWhole = false;
  /** Whether one of its mutations moves money. */
  movesMoney = false;
  /** When what was refused may be tried again, in seconds; undefined if nothing says so. */
  retryAfterSeconds: number | undefined = undefined;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  readonly #edge: Edge;
  readonly #controller = new AbortController();
  /** Aborts when the client goes away, and with a TimeoutError at the deadline. */
  readonly signal = this.#controller.signal;
  readonly #member: Member<AbortController>;
  readonly #timer: NodeJS.Timeout;
  #startedMs: number | undefined;
  #code = "OK";
  #type = "invalid";
  #field = "none";
  readonly #externalIds: string[] = [];
  #isOver = false;

  constructor(edge: Edge, request: OperationRequest) {
    this.request = request;
    this.deadlineMs = Date.now() + edge.timeoutMs;
    this.#edge = edge;
    this.#member = edge.underWay.add(this.#controller);
    this.#timer = setTimeout(() => this.#controller.abort(deadlinePassed()), edge.timeoutMs);
  }

  /** Starts the record. Not called for a CORS preflight, which is not an operation. */
  begin(): void {
    this.#startedMs = performance.now();
  }

  /** Records the type and the root fields. Field names come from the schema, so labels stay few. */
  asks(type: "query" | "mutation" | "subscription", fields: readonly string[]): void {
    this.#type = type;
    this.#field = fieldLabel(fields);
    const { span } = this.request;
    span.rename(type, { of: "graphql", name: `${type} ${this.#field}` });
    span.set({
      "graphql.operation.type": type,
      "payments_gateway.graphql.fields": fields.slice(0, maxFields).join(","),
    });
  }

  /** Records an external_id that the operation asks for. */
  about(externalId: string): void {
    const known = this.#externalIds;
    if (known.length < maxExternalIds && !known.includes(externalId)) known.push(externalId);
  }

  /** Records the `extensions.code` that the client receives. Only the first call counts. */
  failed(code: string): void {
    if (this.#code !== "OK") return;
    this.#code = code;
    if (serverFailures.has(code)) this.request.span.fail(code);
  }

  /** Notes when a refusal may be tried again: of several, the last to be so decides. */
  noteRetry(error: unknown): void {
    const seconds = retryAfterSeconds(error);
    if (seconds === undefined) return;
    this.retryAfterSeconds = Math.max(this.retryAfterSeconds ?? 0, seconds);
  }

  /** Removes the deadline and gives the slot back: the operation is a stream, or is over. */
  liftDeadline(): void {
    clearTimeout(this.#timer);
    this.#member.leave();
    this.request.slot.leave();
  }

  /**
   * Called when the client has left or has its response: reports the end, and cancels what still
   * runs for it. Only the first call counts.
   * @param hasLeft whether the client has left before it had its response
   */
  end({ hasLeft = false } = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.live?.failure) this.failed(codeOf(this.live.failure.error));
    if (hasLeft) this.failed("CANCELLED");
    this.#report();
    this.request.span.end();
    this.liftDeadline();
    // An abort creates an exception.
    if (!this.isWhole) this.#controller.abort();
  }

  #report(): void {
    if (this.#startedMs === undefined) return;
    const { span, requestId, streamsBy, watch } = this.request;
    const durationMs = performance.now() - this.#startedMs;
    const [type, field, code] = [this.#type, this.#field, this.#code];
    const isStream = watch || type === "subscription" || streamsBy === "websocket";
    const transport = isStream ? streamsBy : "http";
    if (!watch) {
      span.set({ "payments_gateway.transport": transport });
      const { traceparent } = span;
      const ended = { type, field, transport, code, durationMs, traceparent };
      this.#edge.report("graphqlEnded", ended);
    }
    const entry = {
      ...(watch ?? { type, field }),
      code,
      durationMs: Math.round(durationMs * 1000) / 1000,
      requestId,
      caller: this.caller?.name,
      account: this.caller?.account,
      externalId: this.#externalIds.join(" ") || undefined,
      transport,
    };
    // A connection's close event, which may call this, runs outside the span's context.
    span.run(() => {
      const level = code === "INTERNAL_SERVER_ERROR" ? "error" : "info";
      this.#edge.log[level](entry, watch ? "watch" : "graphql");
    });
  }
}

const maxFields = 5;
const maxExternalIds = 5;

function fieldLabel(fields: readonly string[]): string {
  const [first = "none", ...others] = fields;
  if (others.length > 0) return "several";
  return first.startsWith("__") ? "introspection" : first;
}

const serverFailures: ReadonlySet<string> = new Set([
  "INTERNAL_SERVER_ERROR",
  "UPSTREAM_UNAVAILABLE",
  "OUTCOME_UNKNOWN",
  "DEADLINE_EXCEEDED",
]);
