import type { GraphQLSchema } from "graphql";
import type { Identify } from "../auth/identify.ts";
import { UnderWay } from "../collections/under-way.ts";
import type { Core } from "../core/core.ts";
import { Heartbeats } from "../live/heartbeats.ts";
import { type Admission, createAdmission, type RefusableKind } from "../net/admission.ts";
import type { Cut } from "../net/cut.ts";
import { Intake } from "../net/intake.ts";
import { type Logger, noReport, type Report } from "../report.ts";
import { noTracing, type Tracing } from "../telemetry/tracing/tracing.ts";
import { Documents } from "./documents.ts";
import { createErrorFormatter } from "./errors.ts";
import { createDocumentOf, type TrustedDocumentsOptions } from "./trusted-documents.ts";

export interface EdgeOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Logger;
  readonly schema: GraphQLSchema;
  /** Default: nothing is reported. */
  readonly report?: Report;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing;
  /** Turns GraphiQL off. */
  readonly production: boolean;
  /** Whether introspection works and errors suggest schema names. Default: not in production. */
  readonly introspection?: boolean;
  /** Documents that requests may name by their ids. Default: none. */
  readonly trustedDocuments?: TrustedDocumentsOptions | undefined;
  /** Origins besides our own whose pages may call from a browser. Default: none. */
  readonly corsOrigins?: readonly string[];
  /** The longest that a query or a mutation may take, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number;
  /**
   * Longest silence on an event stream, interval of pings on a WebSocket, and how long its client
   * may take to answer one, in milliseconds. Default: 15,000.
   */
  readonly heartbeatMs?: number;
  /** Decides which operations start. Default: all do. */
  readonly admission?: Admission;
  /**
   * Takes in bodies, gives large messages their turns, and bounds what clients make us hold.
   * Default: one that shares its memory with no other listener.
   */
  readonly intake?: Intake;
}

/** What the parts of this edge share. */
export type Edge = ReturnType<typeof createEdge>;

export function createEdge(options: EdgeOptions) {
  const { core, identify, log, report = noReport, tracing = noTracing, production } = options;
  const { schema, introspection = !production, corsOrigins = [] } = options;
  const { timeoutMs = 60_000, heartbeatMs = 15_000 } = options;
  const { admission = createAdmission({ maxCalls: undefined }) } = options;
  const { intake = new Intake({ admission }) } = options;
  const formatError = createErrorFormatter(log);
  return {
    ...{ core, identify, log, report, tracing, production, corsOrigins, timeoutMs },
    ...{ admission, intake, formatError },
    documents: new Documents({ schema, introspection }),
    /** The text of the document that a request names. */
    documentOf: createDocumentOf(schema, options.trustedDocuments),
    heartbeats: new Heartbeats(heartbeatMs),
    onCut: (limit: Cut) => report("cut", { listener: "public", limit }),
    /** Reports a call that is refused because of overload. */
    onRefused: (kind: RefusableKind) => report("refused", { listener: "public", kind }),
    /** Queries and mutations without a response yet. */
    underWay: new UnderWay<AbortController>(),
  };
}
