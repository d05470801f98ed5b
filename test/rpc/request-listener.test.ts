import assert from "node:assert/strict";
import { test } from "node:test";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { createAdmission } from "../../src/net/admission.ts";
import type { HttpResponse, RequestHead } from "../../src/net/request-head.ts";
import { noReport } from "../../src/report.ts";
import type { ServingOptions } from "../../src/rpc/methods.ts";
import { defaultLimits, type ServedMethod } from "../../src/rpc/methods.ts";
import { createRequestListener } from "../../src/rpc/request-listener.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";

/** A listener that cannot serve its only method, /x, and its logged errors. */
function broken() {
  const errors: object[] = [];
  const error = (record: object | string) => void errors.push(record as object);
  const log = { ...createLogger("silent"), error };
  const method = {
    ...{ requestPath: "/x", method: Health.method.check },
    get allowedMethods(): string[] {
      throw new Error("broken while handling 4111111111111111");
    },
  };
  const options: Partial<ServingOptions> = {
    admission: createAdmission({ maxCalls: undefined }),
    limits: defaultLimits,
    ...{ log, tracing: noTracing, report: noReport },
  };
  const methods = [method as unknown as ServedMethod];
  return { listener: createRequestListener(options as ServingOptions, methods), errors };
}

/** A request that is answered by statuses, but where sending that fails. */
function headOf(about: Partial<RequestHead>, fails?: number) {
  const statuses: number[] = [];
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  const answer = ({ status }: HttpResponse) => {
    if (status === fails) throw new Error("EMFILE");
    statuses.push(status);
    resolve();
  };
  return { head: { headers: {}, answer, ...about } as RequestHead, statuses, answered };
}

test("a call that cannot be served is answered 500", () => {
  const { listener, errors } = broken();
  const { head, statuses } = headOf({ method: "POST", url: "/x", headers: { host: "here" } });
  listener(head);
  assert.deepEqual([statuses, errors.length], [[500], 1]);
});

test("a file that cannot be read now, as without a free descriptor, does not end the process", async () => {
  const { listener, errors } = broken();
  // Where reading the file fails, all after it is not run.
  const { head, statuses, answered } = headOf({ method: "GET", url: "/openapi.json" }, 200);
  listener(head);
  await answered;
  assert.deepEqual(statuses, [500]);
  await new Promise(setImmediate);
  assert.equal(errors.length, 1);
});
