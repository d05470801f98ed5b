/**
 * Writes openapi.json, which the gateway serves: the unary methods as HTTP with JSON, which is what
 * Connect makes of them, from the proto with its comments, options and rules.
 */
import { writeFileSync } from "node:fs";
import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { codeToHttpStatus, codeToString } from "@connectrpc/connect/protocol-connect";
import { replayedHeader } from "../../src/core/idempotency.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  LocalizedMessageSchema,
  RetryInfoSchema,
} from "../../src/gen/google/rpc/error_details_pb.ts";
import { OutcomeUnknownSchema, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { endpoint, moves_money, scope } from "../../src/gen/payments/v1/options_pb.ts";
import { rateLimitHeaderNames } from "../../src/ratelimit/headers.ts";
import { statusCodes } from "../../src/rpc/errors.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { version } from "../../src/version.ts";
import { commentsOf, readProtos } from "../proto-comments.ts";
import { type Schema, Schemas } from "./schemas.ts";

const { NO_SIDE_EFFECTS } = MethodOptions_IdempotencyLevel;
const comments = commentsOf(readProtos());
const methods = services.flatMap((service) => service.methods);
const unary: readonly DescMethod[] = methods.filter(({ methodKind }) => methodKind === "unary");
const streams = methods.filter(({ methodKind }) => methodKind !== "unary");
const schemas = new Schemas(
  comments,
  unary.map(({ input }) => input),
);

/** Each HTTP status of an error, with the codes that have it. */
const failures = Map.groupBy(Object.values(statusCodes), codeToHttpStatus);

const details = [
  UpstreamErrorSchema,
  OutcomeUnknownSchema,
  ErrorInfoSchema,
  BadRequestSchema,
  RetryInfoSchema,
  LocalizedMessageSchema,
];
const callParameters = ["MerchantAccount", "RequestId", "TimeoutMs", "Language"].map((name) =>
  component("parameters", name),
);

const document = {
  openapi: "3.1.1",
  info: {
    title: "Payments gateway",
    version,
    summary: "Payments, payouts, the customer's wallet and subscriptions, as JSON over HTTP.",
    description: [
      "The unary methods of `payments.v1` by the Connect protocol: a POST of JSON, answered with JSON. The same methods, with the same names, are served by gRPC and gRPC-Web on the same port.",
      "Fields have their names in camelCase; requests may also write them as the proto does (`external_id`). A field that is not known is refused. Numbers of 64 bits and amounts are texts. A field without a value is left out.",
      `Streams need a client of Connect or gRPC, or GraphQL, and are not described here: ${streams.map(({ parent, name }) => `\`${parent.name}.${name}\``).join(", ")}.`,
      "Made from the proto by `npm run generate`.",
    ].join("\n\n"),
  },
  servers: [{ url: "/", description: "The rpc listener that serves this document." }],
  security: [{ bearer: [] }],
  tags: services.map((service: DescService) => ({
    name: tagOf(service),
    description: comments.get(service.name),
  })),
  paths: Object.fromEntries(unary.map((method) => [pathOf(method), pathItem(method)])),
  components: {
    securitySchemes: {
      bearer: {
        type: "http",
        scheme: "bearer",
        description: "An API key or a JWT. A gateway with AUTH_MODE=none needs none.",
      },
    },
    parameters: parameters(),
    headers: headers(),
    responses: Object.fromEntries(
      [...failures].map(([status, codes]) => [`Error${status}`, failure(codes)]),
    ),
    // Last: what was referred to before.
    schemas: { ...errorSchemas(), ...schemas.all },
  },
};

writeFileSync("openapi.json", `${JSON.stringify(document, null, 2)}\n`);

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** Generators of clients make a class of each tag, and add "Service" to its name themselves. */
function tagOf({ name }: DescService): string {
  return name.replace("Service", "");
}

function pathItem(method: DescMethod): Schema {
  const post = {
    ...operation(method, ""),
    parameters: [
      ...callParameters,
      ...(getOption(method, moves_money) ? [component("parameters", "IdempotencyKey")] : []),
    ],
    requestBody: {
      required: true,
      content: { "application/json": { schema: schemas.ref(method.input) } },
    },
  };
  if (method.idempotency !== NO_SIDE_EFFECTS) return { post };
  const get = {
    ...operation(method, "ByGet"),
    parameters: [
      ...callParameters,
      component("parameters", "ConnectVersion"),
      component("parameters", "Encoding"),
      {
        name: "message",
        in: "query",
        required: true,
        description: "The request, as JSON.",
        content: { "application/json": { schema: schemas.ref(method.input) } },
      },
    ],
  };
  return { post, get };
}

function operation(method: DescMethod, suffix: string): Schema {
  const movesMoney = getOption(method, moves_money);
  const { parent, name } = method;
  const comment = comments.get(`${parent.name}.${name}`) ?? "";
  const rest = getOption(method, endpoint);
  const facts = [
    `Needs the scope \`${getOption(method, scope)}\`.`,
    ...(rest ? [`Calls \`${rest}\` of the payments service.`] : []),
    ...(movesMoney
      ? [
          "Moves money: after an error with the detail `OutcomeUnknown`, look it up; do not repeat it.",
        ]
      : []),
  ];
  const answered = [
    ...["x-request-id", ...rateLimitHeaderNames],
    ...(movesMoney ? [replayedHeader] : []),
  ];
  return {
    operationId: name + suffix,
    tags: [tagOf(parent)],
    summary: comment.split(/(?<=[.:])\s/, 1)[0],
    description: [comment, facts.join(" ")].join("\n\n"),
    responses: {
      "200": {
        description: comments.get(method.output.name) ?? "Done.",
        headers: headersOf(answered),
        content: { "application/json": { schema: schemas.ref(method.output) } },
      },
      ...Object.fromEntries(
        [...failures.keys()]
          .sort()
          .map((status) => [status, component("responses", `Error${status}`)]),
      ),
    },
  };
}

function component(kind: "parameters" | "headers" | "responses", name: string): Schema {
  return { $ref: `#/components/${kind}/${name}` };
}

function failure(codes: readonly Code[]): Schema {
  const isRetryable = codes.includes(Code.ResourceExhausted) || codes.includes(Code.Unavailable);
  const names = ["x-request-id", ...(isRetryable ? ["retry-after"] : [])];
  return {
    description: `${codes.map((code) => `\`${codeToString(code)}\``).join(", ")}.`,
    headers: headersOf(names),
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
}

/** An error as Connect writes it, and what the gateway attaches to it. */
function errorSchemas(): Record<string, Schema> {
  return {
    Error: {
      type: "object",
      required: ["code"],
      description:
        "Why a call failed. Look for the detail `payments.v1.OutcomeUnknown` first: with it, money may have moved.",
      properties: {
        code: { type: "string", enum: Object.values(statusCodes).map(codeToString) },
        message: { type: "string", description: "For developers, not for customers." },
        details: { type: "array", items: { $ref: "#/components/schemas/ErrorDetail" } },
      },
    },
    ErrorDetail: {
      type: "object",
      required: ["type", "value"],
      description: "A message that says more about an error.",
      properties: {
        type: {
          type: "string",
          description: `Name of the message: ${details.map(({ typeName }) => `\`${typeName}\``).join(", ")}. Others may be added.`,
        },
        value: { type: "string", description: "The message in binary form, as base64." },
        debug: {
          description: "The message as JSON.",
          anyOf: details.map((desc) => schemas.ref(desc)),
        },
      },
    },
  };
}

function headers(): Record<string, Schema> {
  const text = { type: "string" };
  const count = { type: "integer", minimum: 0 };
  return {
    "x-request-id": { description: "Names the call in the gateway's log.", schema: text },
    "idempotent-replayed": {
      description: "`true` for an answer that an earlier call with the same key got.",
      schema: text,
    },
    "retry-after": { description: "Seconds to wait before the next attempt.", schema: count },
    "x-ratelimit-limit": { description: "Requests a second of the account.", schema: count },
    "x-ratelimit-remaining": { description: "How many of them are left.", schema: count },
    "x-ratelimit-reset": { description: "Seconds until all are there again.", schema: count },
    "ratelimit-policy": { description: "The same budget, by the IETF draft.", schema: text },
    ratelimit: { description: "What is left of it for this kind of call.", schema: text },
  };
}

function headersOf(names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, component("headers", name)]));
}

function parameters(): Record<string, Schema> {
  const inHeader = (name: string, description: string, schema: Schema) => ({
    ...{ name, in: "header", description, schema },
  });
  return {
    MerchantAccount: inHeader(
      "x-merchant-account",
      "The merchant account, where the caller may use several.",
      { type: "string" },
    ),
    RequestId: inHeader(
      "x-request-id",
      "Comes back with the answer and stands in the gateway's log. Default: the gateway makes one.",
      { type: "string", maxLength: 128 },
    ),
    TimeoutMs: inHeader(
      "connect-timeout-ms",
      "How long the caller waits, in milliseconds. Give a call that moves money 30000 or more.",
      { type: "integer", minimum: 0, maximum: 9_999_999_999 },
    ),
    Language: inHeader(
      "accept-language",
      "Language of the text for the customer in an error, its detail `google.rpc.LocalizedMessage`: English, unless Ukrainian (`uk`) is preferred.",
      { type: "string" },
    ),
    IdempotencyKey: inHeader(
      "idempotency-key",
      "Makes a repeat safe: for 24 hours the same key with the same request gets the first answer again.",
      { type: "string", minLength: 1, maxLength: 255 },
    ),
    ConnectVersion: {
      name: "connect",
      in: "query",
      description: "Version of the protocol.",
      schema: { type: "string", enum: ["v1"] },
    },
    Encoding: {
      ...{
        name: "encoding",
        in: "query",
        required: true,
        description: "How `message` is written.",
      },
      schema: { type: "string", enum: ["json"] },
    },
  };
}
