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
function broken(more: Partial<ServingOptions> = {}) {
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
    ...{ log, tracing: noTracing, report: noReport, ...more },
  };
  const methods = [method as unknown as ServedMethod];
  return { listener: createRequestListener(options as ServingOptions, methods), errors };
}

/** A request, and what it is answered. To send the status `fails` fails. */
function headOf(about: Partial<RequestHead>, fails?: number) {
  const answers: HttpResponse[] = [];
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  const answer = (answer: HttpResponse) => {
    if (answer.status === fails) throw new Error("EMFILE");
    answers.push(answer);
    resolve();
  };
  const statuses = () => answers.map(({ status }) => status);
  return { head: { headers: {}, answer, ...about } as RequestHead, answers, statuses, answered };
}

test("a call that cannot be served is answered 500", () => {
  const { listener, errors } = broken();
  const { head, statuses } = headOf({ method: "POST", url: "/x", headers: { host: "here" } });
  listener(head);
  assert.deepEqual([statuses(), errors.length], [[500], 1]);
});

test("a file that cannot be read now, as without a free descriptor, does not end the process", async () => {
  const { listener, errors } = broken();
  // Where reading the file fails, all after it is not run.
  const { head, statuses, answered } = headOf({ method: "GET", url: "/openapi.json" }, 200);
  listener(head);
  await answered;
  assert.deepEqual(statuses(), [500]);
  await new Promise(setImmediate);
  assert.equal(errors.length, 1);
});

test("a misdirected request is refused in the protocol of its content type", () => {
  const misdirection = () => ({ status: 421, message: "not here" });
  const { listener } = broken({ misdirection });
  const answerTo = (type: string) => {
    const { head, answers } = headOf({ url: "/x", headers: { "content-type": type } });
    listener(head);
    const [{ status, headers, trailers, body } = assert.fail()] = answers;
    const text = Buffer.from(body as Uint8Array).toString();
    return { status, told: { ...headers, ...trailers } as Record<string, string>, text };
  };
  const unary = answerTo("application/json");
  const { code, details } = JSON.parse(unary.text);
  const reason = "google.rpc.ErrorInfo";
  assert.deepEqual([unary.status, code, details[0].type], [421, "permission_denied", reason]);
  const stream = answerTo("application/connect+json");
  const { error } = JSON.parse(stream.text.slice(5));
  assert.deepEqual([stream.status, error.code], [200, "permission_denied"]);
  const { status, told } = answerTo("application/grpc");
  assert.deepEqual([status, told["grpc-status"], told["grpc-message"]], [200, "7", "not here"]);
  assert.ok(Buffer.from(told["grpc-status-details-bin"] ?? "", "base64").includes(reason));
  const web = answerTo("application/grpc-web+proto");
  assert.match(web.text, /grpc-status: 7\r\ngrpc-status-details-bin: /);
});
