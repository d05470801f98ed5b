import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { create, toJson } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import { type ErrorCode, errorOfAbort, GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  type WatchPaymentRequest,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { WatchPayoutRequest } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { statusCodes } from "../../src/rpc/errors.ts";
import { errorOf } from "../core/answers.ts";
import { until } from "../until.ts";
import {
  binary,
  bothVersions,
  type Formats,
  json,
  type Requests,
  recordedAnswers,
  requestsOf,
  type Sent,
} from "./recorded-answers.ts";
import { envelope } from "./start.ts";

/* `recorded-answers.ts` describes what is compared, and what is not. */

const watchPayment = "/payments.v1.PaymentService/WatchPayment";
const watchPayout = "/payments.v1.PayoutService/WatchPayout";
const streamEvents = "/payments.v1.EventService/StreamEvents";

const event = (cursor: string, padding = 0) =>
  create(EventSchema, { cursor, externalId: "é€𝄞".padEnd(padding, "x") });

/** Behaves as the external id says, for example `error:<code>`, `late:<code>` or `none`. */
async function* watch({ externalId }: { externalId: string }, call: Call): AsyncGenerator<Event> {
  const [what, name = ""] = externalId.split(":");
  if (what === "error") throw errorOf(name as ErrorCode);
  if (what === "bug") throw new TypeError(`no property of ${name}`);
  if (what !== "unopened") call.onOpen?.(undefined);
  if (what === "none") return;
  yield event("c1");
  if (what === "large") yield event("c2", 5_000);
  if (what === "late") {
    const { code, message, details } = errorOf(name as ErrorCode);
    throw new GatewayError(code, message, { ...details, resumeCursor: "c1" });
  }
  if (what === "long-error") {
    const fields = Array.from({ length: 20 }, (_, i) => ({
      path: `f${i}`,
      message: "m".repeat(200),
    }));
    throw new GatewayError("INVALID_ARGUMENT", "too many", { fields });
  }
  if (what === "late-bug") throw new TypeError(`no property of ${name}`);
  if (what === "until-aborted" || what === "until-cut") {
    if (!call.signal.aborted) await once(call.signal, "abort");
    if (what === "until-cut") throw errorOfAbort(call.signal);
    return;
  }
  yield event("c3");
}

const recorded = recordedAnswers("watches", {
  watchPayment: (request: WatchPaymentRequest, call) => watch(request, call),
  watchPayout: (request: WatchPayoutRequest, call) => watch(request, call),
  streamEvents: (_, call) => watch({ externalId: "" }, call),
});
before(recorded.start);
after(recorded.stop);

const formats: Formats = {
  "application/connect+json": bothVersions,
  "application/connect+json; charset=utf-8": bothVersions,
  "application/connect+proto": bothVersions,
  "application/grpc": bothVersions,
  "application/grpc+proto": ["2"],
  "application/grpc+json": ["2"],
  "application/grpc-web": bothVersions,
  "application/grpc-web+proto": bothVersions,
  "application/grpc-web+json": ["1.1"],
};

function messageOf(type: string, externalId: string): Buffer {
  const message = create(WatchPaymentRequestSchema, { externalId });
  return type.includes("json")
    ? json(toJson(WatchPaymentRequestSchema, message))
    : binary(WatchPaymentRequestSchema, message);
}

function allRequestsOf(type: string): Requests {
  const headers = { "content-type": type };
  const of = (externalId: string) => envelope(messageOf(type, externalId));
  const known = of("order-1");
  const ofBody = (body: Sent["body"]) => ({ headers, body });
  const isGrpc = type.includes("grpc");
  const within = (ms: number, externalId: string) => {
    const timeout = isGrpc ? { "grpc-timeout": `${ms}m` } : { "connect-timeout-ms": `${ms}` };
    return { headers: { ...headers, ...timeout }, body: of(externalId) };
  };
  const late = Object.keys(statusCodes).map((code) => [
    `error ${code} behind an event`,
    ofBody(of(`late:${code}`)),
  ]);
  const way = { path: watchPayment, type, isGrpc, isStream: true };
  return {
    ...requestsOf({ ...way, messageOf: (externalId) => messageOf(type, externalId) }),
    "a watch of a payout": { path: watchPayout, ...ofBody(known) },
    "all events": {
      path: streamEvents,
      ...ofBody(envelope(type.includes("json") ? json({}) : Buffer.of())),
    },
    "a watch that opens with its first event": ofBody(of("unopened")),
    "a watch without events": ofBody(of("none")),
    "a bug behind an event": ofBody(of("late-bug:4111111111111111")),
    "a long error": ofBody(of("long-error")),
    "a long error, gzip": {
      headers: { ...headers, [`${isGrpc ? "grpc" : "connect"}-accept-encoding`]: "gzip" },
      body: of("long-error"),
    },
    "a deadline": within(30, "until-cut"),
    "a deadline of a watch that just stops": within(30, "until-aborted"),
    "no time at all": within(0, "until-cut"),
    "a type of unary calls": { headers: { "content-type": "application/json" }, body: known },
    "the largest": ofBody(envelope(Buffer.concat([known.subarray(5), Buffer.alloc(9_000, 0x20)]))),
    "two messages": ofBody(Buffer.concat([known, known])),
    "a message and its end": ofBody(Buffer.concat([known, envelope(Buffer.from("{}"), 2)])),
    "two pieces": ofBody([known.subarray(0, 3), known.subarray(3)]),
    "three pieces": ofBody([known.subarray(0, 5), known.subarray(5, 8), known.subarray(8)]),
    ...Object.fromEntries(late),
  };
}

for (const [type, versions] of Object.entries(formats)) {
  for (const version of versions) {
    test(`watches by ${type} over HTTP/${version} are answered as by Connect's handlers`, async () => {
      await recorded.compare(version, type, watchPayment, allRequestsOf(type));
    });

    test(`a client that leaves is treated as by Connect's handlers, by ${type} over HTTP/${version}`, async () => {
      const body = envelope(messageOf(type, "until-cut"));
      const headers = { "content-type": type };
      const outcome = await recorded.traced(async (at, session) => {
        const [calls, records] = [at.calls.length, at.records.length];
        const method = "POST";
        if (version === "2") {
          const stream = session.request({ ":path": watchPayment, ":method": method, ...headers });
          stream.end(body);
          await once(stream, "data");
          stream.close();
        } else {
          const request = http.request(at.url + watchPayment, { method, headers, agent: false });
          request.on("error", () => undefined).end(body);
          const [response] = (await once(request, "response")) as [http.IncomingMessage];
          response.on("error", () => undefined);
          await once(response, "data");
          request.destroy();
        }
        await until(() => at.records.length > records);
        assert.equal(at.records.at(-1)?.code, "CANCELLED");
        assert.equal(at.calls[calls]?.call.signal.aborted, true);
      });
      recorded.check(`${type} ${version}, leaving`, { outcome });
    });
  }
}
