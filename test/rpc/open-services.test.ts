import { after, before, test } from "node:test";
import { create, type DescMessage, toJson } from "@bufbuild/protobuf";
import { HealthCheckRequestSchema } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { ServerReflectionRequestSchema } from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import {
  binary,
  bothVersions,
  type Formats,
  json,
  recordedAnswers,
  requestsOf,
} from "./recorded-answers.ts";
import { envelope } from "./start.ts";

/*
 * The services that need no credentials: health and reflection. `recorded-answers.ts` describes what
 * is compared, and what is not.
 */

/** Watches of health end soon: after their first answer nothing changes. */
const ofHealth = recordedAnswers("health", {}, { openStreamMs: 5 });
const ofReflection = recordedAnswers("reflection", {});
for (const { start, stop } of [ofHealth, ofReflection]) {
  before(start);
  after(stop);
}

/* The other types are those of unary-path.test.ts and stream-path.test.ts. */
const ofStreams: Formats = {
  "application/connect+json": bothVersions,
  "application/grpc": bothVersions,
  "application/grpc-web+proto": ["1.1"],
};
const ofUnary: Formats = { "application/json": bothVersions, "application/grpc": ["2"] };

interface Method {
  readonly recorded: ReturnType<typeof recordedAnswers>;
  readonly path: string;
  readonly input: DescMessage;
  readonly formats: Formats;
  /** The request about what has this name. */
  readonly requestOf: (name: string) => Record<string, unknown>;
}

const health = {
  recorded: ofHealth,
  input: HealthCheckRequestSchema,
  requestOf: (service: string) => ({ service }),
};
const reflection = {
  recorded: ofReflection,
  input: ServerReflectionRequestSchema,
  requestOf: (value: string) => ({ host: "h", messageRequest: { case: "fileByFilename", value } }),
};
const methods: readonly Method[] = [
  { path: "/grpc.health.v1.Health/Check", formats: ofUnary, ...health },
  { path: "/grpc.health.v1.Health/List", formats: { "application/json": bothVersions }, ...health },
  { path: "/grpc.health.v1.Health/Watch", formats: ofStreams, ...health },
  {
    path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    formats: ofStreams,
    ...reflection,
  },
  {
    path: "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    formats: { "application/grpc": ["2"] },
    ...reflection,
  },
];

for (const { path, recorded, input, formats, requestOf } of methods) {
  for (const [type, versions] of Object.entries(formats)) {
    const isStream = type in ofStreams && formats !== ofUnary;
    const isGrpc = type.includes("grpc");
    const headers = { "content-type": type };
    const messageOf = (name: string) =>
      type.includes("json")
        ? json(toJson(input, create(input, requestOf(name))))
        : binary(input, requestOf(name));
    const enclosed = isStream || isGrpc ? envelope : (data: Buffer) => data;
    const known = enclosed(messageOf("payments.v1.EventService"));
    const file = enclosed(messageOf("grpc/health/v1/health.proto"));
    const requests = {
      ...requestsOf({ path, type, isGrpc, isStream, messageOf, codes: [] }),
      "a known name": { headers, body: known },
      "a name of a file": { headers, body: file },
      "two messages": { headers, body: Buffer.concat([known, file]) },
      "a message and half of one": { headers, body: [known, file.subarray(0, 7)] },
      "three pieces": { headers, body: [known.subarray(0, 3), known.subarray(3), file] },
      "no time at all": {
        headers: { ...headers, "connect-timeout-ms": "0", "grpc-timeout": "0m" },
        body: known,
      },
      "too large for all": { headers, body: enclosed(Buffer.alloc(70_000, 0x20)) },
      "a read": { method: "GET", headers, body: Buffer.alloc(0) },
    };
    for (const version of versions) {
      test(`calls of ${path} by ${type} over HTTP/${version} are answered as by Connect's handlers`, async () => {
        await recorded.compare(version, `${path} ${type}`, path, requests);
      });
    }
  }
}
