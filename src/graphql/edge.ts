import type { GraphQLSchema } from "graphql";
import type { Identify } from "../auth/identify.ts";
import type { UnderWay } from "../collections/under-way.ts";
import type { Core } from "../core/core.ts";
import type { Heartbeats } from "../live/heartbeats.ts";
import type { OnCut } from "../net/cut.ts";
import type { Intake } from "../net/intake.ts";
import type { Logger, Report } from "../report.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { FormatError } from "./errors.ts";
import type { Operations } from "./operations.ts";
import type { Overload } from "./overload.ts";
import type { DocumentParams } from "./trusted-documents.ts";

/** What the parts of this edge share. */
export interface Edge {
  readonly core: Core;
  /** Default: the schema with which callers get secret fields too. */
  readonly schema: GraphQLSchema;
  readonly operations: Operations;
  readonly identify: Identify;
  readonly log: Logger;
  /** Default: nothing is reported. */
  readonly report: Report;
  /** Default: nothing is traced. */
  readonly tracing: Tracing;
  readonly formatError: FormatError;
  /** The text of the document that a request names. */
  readonly documentOf: (params: DocumentParams) => string | undefined;
  /** Origins besides our own whose pages may call from a browser. Default: none. */
  readonly corsOrigins: readonly string[];
  readonly overload: Overload;
  /**
   * Takes in bodies, gives large messages their turns, and bounds what clients make us hold.
   * Default: one that shares its memory with no other listener.
   */
  readonly intake: Intake;
  readonly onCut: OnCut;
  /** The longest that a query or a mutation may take, in milliseconds. Default: 60,000. */
  readonly timeoutMs: number;
  readonly heartbeats: Heartbeats;
  /** Queries and mutations without a response yet. */
  readonly underWay: UnderWay<AbortController>;
}
