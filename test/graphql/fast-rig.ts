import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { Identify } from "../../src/auth/identify.ts";
import { UnderWay } from "../../src/collections/under-way.ts";
import type { Call, Core } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { createErrorFormatter } from "../../src/graphql/errors.ts";
import { createFastPath } from "../../src/graphql/fast-path.ts";
import { Operation } from "../../src/graphql/operation.ts";
import { createOperations } from "../../src/graphql/operations.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import type { GraphqlServerOptions } from "../../src/graphql/server.ts";
import { createDocumentOf } from "../../src/graphql/trusted-documents.ts";
import { type Admission, freeSlot } from "../../src/net/admission.ts";
import { noReport, type Observations, reportTo } from "../../src/report.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { timeoutMs, until } from "../until.ts";
import { fakeCore } from "./fake-core.ts";
import { type Served, serve, somebody } from "./serve.ts";

/** Admission of a process that has slots left only for calls that move money. */
export const moneyOnly: Admission = {
  inFlight: 0,
  enter: ({ start }) => start({ ...freeSlot, moneyOnly: true }),
};

/** The fast path alone, and the operation that the server gives it with each request. */
export function fastRig(t: TestContext, methods: Partial<Core>, corsOrigins: readonly string[]) {
  const log = createLogger("silent");
  const formatError = createErrorFormatter(log);
  const overload = { refusalsOf: () => [] };
  const operations = createOperations({
    ...{ schema, introspection: false, formatError, overload, compiles: true },
  });
  const { core } = fakeCore(methods);
  const documentOf = createDocumentOf(schema);
  const path = createFastPath({ core, schema, corsOrigins, documentOf, operations });
  const newOperation = () => {
    const span = noTracing.start("graphql", { kind: "server" });
    const underWay = new UnderWay<AbortController>();
    const edge = { log, report: noReport, timeoutMs: 60_000, underWay };
    const given = { requestId: "r", connection: "http", streamsBy: "sse" } as const;
    const authenticate = async () => somebody;
    const operation = new Operation(edge, {
      ...{ ...given, span, slot: freeSlot, acceptLanguage: null, authenticate },
    });
    t.after(() => operation.end());
    return operation;
  };
  return { path, newOperation };
}

/** A server by the fast path or by Yoga, and the operations that it reported as ended and refused. */
interface Traced extends Served {
  readonly ended: Observations["graphqlEnded"][];
  readonly refused: Observations["refused"][];
}

/** Who is calling, as the credentials say: `nobody`, `denied`, `bug`, or somebody. */
const identify: Identify = async ({ header, watchToken }) => {
  const shown = watchToken ?? header("authorization");
  if (shown === "nobody") {
    throw new GatewayError("UNAUTHENTICATED", "say who is calling", { reason: "NOBODY" });
  }
  if (shown === "denied") throw new GatewayError("PERMISSION_DENIED", "not that account");
  if (shown === "bug") throw new TypeError("a bug");
  return somebody;
};

/** The same edge twice: by the fast path, and by Yoga. */
export function startBoth(
  t: TestContext,
  methods: Partial<Core>,
  options: Partial<GraphqlServerOptions>,
): Promise<[fast: Traced, byYoga: Traced]> {
  const start = async (fast: boolean): Promise<Traced> => {
    const ended: Traced["ended"] = [];
    const refused: Traced["refused"] = [];
    const report = reportTo({
      graphqlEnded: (operation) => void ended.push(operation),
      refused: (refusal) => void refused.push(refusal),
    });
    return { ...(await serve(t, methods, { identify, fast, report, ...options })), ended, refused };
  };
  return Promise.all([start(true), start(false)]);
}

/**
 * Asserts that both have called the core alike, and have logged and reported the same. Times, ids
 * that are new in each response and the order of the records are not compared: a record is written
 * only after its response was sent.
 */
export async function assertTracesAlike(fast: Traced, byYoga: Traced): Promise<void> {
  for (const { post } of [fast, byYoga]) {
    await (await post({ query: "{ rateLimit { limit } }" }, { "x-request-id": "last" })).text();
  }
  const traces = () => [fast, byYoga].map(traceOf);
  await until(
    () => {
      const [one, other] = traces();
      return one?.logged.join().includes('"last"') && isDeepStrictEqual(one, other);
    },
    "",
    AbortSignal.timeout(timeoutMs),
  ).catch(() => undefined);
  const [one, other] = traces();
  assert.deepEqual(one, other);
}

function traceOf({ seen, ended, refused, logged }: Traced) {
  return {
    refused: refused.map((refusal) => JSON.stringify(refusal)).sort(),
    calls: seen().map(({ method, args }) => {
      const { caller, idempotencyKey, transport, resumed, deadlineMs } = args.at(-1) as Call;
      const told = { caller, idempotencyKey, transport, resumed };
      return { method, given: args.slice(0, -1), ...told, hasDeadline: deadlineMs !== undefined };
    }),
    ended: ended
      .map(({ durationMs, ...others }) => JSON.stringify([durationMs >= 0, others]))
      .sort(),
    logged: logged().split("\n").slice(0, -1).map(withoutTimes).sort(),
  };
}

function withoutTimes(line: string): string {
  const { time, durationMs, requestId, err, ...rest } = JSON.parse(line);
  assert.ok(time !== undefined);
  const isNew = /^[0-9a-f]{8}-/.test(String(requestId));
  return JSON.stringify({
    ...{ ...rest, failure: err?.name ?? err?.type, message: err?.message },
    ...{ requestId: isNew ? "new" : requestId, timed: durationMs !== undefined },
  });
}
