import type { TestContext } from "node:test";
import { UnderWay } from "../../src/collections/under-way.ts";
import type { Core } from "../../src/core/core.ts";
import { createErrorFormatter } from "../../src/graphql/errors.ts";
import { createFastPath } from "../../src/graphql/fast-path.ts";
import { Live } from "../../src/graphql/live.ts";
import { createLifetime } from "../../src/graphql/operation-lifetime.ts";
import { createOperationRecord } from "../../src/graphql/operation-record.ts";
import { createOperations } from "../../src/graphql/operations.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { createDocumentOf } from "../../src/graphql/trusted-documents.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { fakeCore } from "./fake-core.ts";
import { somebody } from "./serve.ts";

/** The fast path alone, and what the server gives it with each request. */
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
  const surroundings = () => {
    const span = noTracing.start("graphql", { kind: "server" });
    const record = createOperationRecord({ requestId: "r", connection: "http", span, log });
    const underWay = new UnderWay<AbortController>();
    const lifetime = createLifetime({ requestId: "r", record, timeoutMs: 60_000, underWay });
    t.after(lifetime.end);
    const authenticate = async () => somebody;
    return { lifetime, authenticate, live: new Live(""), acceptLanguage: null };
  };
  return { path, surroundings };
}
