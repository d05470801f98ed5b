import { type FieldViolation, GatewayError } from "../../errors.ts";
import { UpstreamErrorSchema } from "../../gen/payments/v1/error_pb.ts";
import { userMessage } from "../../upstream/user-message.ts";
import {
  codeOf,
  graphqlSpelling,
  mappings,
  messageOf,
  retryAfterSeconds,
  spelled,
} from "../errors.ts";
import { builder } from "./builder.ts";
import { messageFields } from "./message-type.ts";

/** The error types of a mutation's result. */
type FailureName =
  | "PaymentServiceError"
  | "RateLimitError"
  | "OutcomeUnknownError"
  | "InvalidInputError";

/**
 * A rejected or failed mutation, reported in its result rather than in `errors`. It has the fields
 * of the payments service's Error object, if there is one.
 */
export interface Failure {
  readonly failureName: FailureName;
  readonly error: GatewayError;
  /** The rejected fields, by their paths in the GraphQL input. */
  readonly fields: readonly FieldViolation[];
}

/**
 * The failure that a mutation returns in its result. Undefined for an error that concerns the whole
 * request (authentication, rights, an unreachable service, a bug), which goes into `errors`.
 * @param toPath converts the path of a field of the request to that in the GraphQL input
 */
export function failureOf(thrown: unknown, toPath: (path: string) => string): Failure | undefined {
  if (!(thrown instanceof GatewayError)) return undefined;
  const failureName = nameOf(thrown);
  const fields = spelled(thrown.details.fields ?? [], graphqlSpelling, toPath);
  return failureName && { ...thrown.details.upstream, failureName, error: thrown, fields };
}

/** The code of a failure in metrics and logs, in the form of `extensions.code`. */
export function failureCode({ failureName, error }: Failure): string {
  return failureName === "OutcomeUnknownError" ? "OUTCOME_UNKNOWN" : codeOf(error);
}

function nameOf({ code, details }: GatewayError): FailureName | undefined {
  if (details.outcomeUnknown) return "OutcomeUnknownError";
  if (code === "RESOURCE_EXHAUSTED") return "RateLimitError";
  if (details.upstream) return "PaymentServiceError";
  if (code === "INVALID_ARGUMENT") return "InvalidInputError";
  return undefined;
}

const ErrorInterface = builder.interfaceRef<Failure>("Error").implement({
  description: "Why a mutation did not do what it was asked to.",
  resolveType: ({ failureName }) => failureName,
  fields: (t) => ({
    message: t.string({
      description: "Human-readable text, for developers rather than customers.",
      nullable: false,
      resolve: ({ error, fields }) => messageOf(error, fields),
    }),
  }),
});

type FailureFields = PothosSchemaTypes.ObjectFieldBuilder<
  typeof builder.$inferSchemaTypes,
  Failure
>;

/** Not of the interface: types of other subgraphs that have an `Error` too would need it. */
const userMessageField = (t: FailureFields) => ({
  userMessage: t.string({
    description:
      "Text for the customer, in English or Ukrainian, as the header `Accept-Language` asks. It " +
      "names no internal reason, and may change at any time.",
    nullable: false,
    resolve: ({ error }, _, { operation }) =>
      userMessage(error, operation.request.acceptLanguage).message,
  }),
});

/** The `code` and `errorId` of the payments service, null if it did not answer with an error. */
const serviceFields = (t: FailureFields) =>
  messageFields(t, UpstreamErrorSchema, {
    omit: [...notShown, "type", "param", "paymentId", "unrecognized"],
  });

const notShown = ["message", "httpStatus"] as const;

const PaymentServiceError = builder.objectRef<Failure>("PaymentServiceError").implement({
  description: "The payments service answered with an error.",
  interfaces: [ErrorInterface],
  fields: (t) => ({
    ...userMessageField(t),
    ...messageFields(t, UpstreamErrorSchema, { omit: notShown }),
    retryable: t.boolean({
      description: "Whether the very same call may succeed later.",
      nullable: false,
      resolve: ({ error }) => mappings[error.code].retryable,
    }),
  }),
});

const RateLimitError = builder.objectRef<Failure>("RateLimitError").implement({
  description:
    "Too many requests: the payments service's budget is used up, or it refused one more. Nothing " +
    "was done.",
  interfaces: [ErrorInterface],
  fields: (t) => ({
    ...userMessageField(t),
    retryAfterSeconds: t.int({
      description: "When a retry may succeed, in seconds from now; null when it is not known.",
      resolve: ({ error }) => retryAfterSeconds(error),
    }),
    ...serviceFields(t),
  }),
});

const OutcomeUnknownError = builder.objectRef<Failure>("OutcomeUnknownError").implement({
  description:
    "The call was sent, and whether it took effect is not known: the money may have moved. Do not " +
    "repeat it. Look the payment or payout up or watch it; the gateway finds out and tells.",
  interfaces: [ErrorInterface],
  fields: (t) => ({
    ...userMessageField(t),
    externalId: t.string({
      description: "The externalId of the call.",
      nullable: false,
      resolve: ({ error }) => error.details.outcomeUnknown?.externalId ?? "",
    }),
    ...serviceFields(t),
  }),
});

const InvalidField = builder.objectRef<FieldViolation>("InvalidField").implement({
  description: "A field of the input that was refused.",
  fields: (t) => ({
    path: t.exposeString("path", {
      description: "Where it is within `input`, such as `paymentMethod.method.cc.number`.",
      nullable: false,
    }),
    message: t.exposeString("message", { description: "What is wrong with it.", nullable: false }),
  }),
});

const InvalidInputError = builder.objectRef<Failure>("InvalidInputError").implement({
  description:
    "The input was refused before anything was sent. Formats, lengths, ranges and what has to go " +
    "together are checked here; shape and types are checked by GraphQL itself, in `errors`.",
  interfaces: [ErrorInterface],
  fields: (t) => ({
    ...userMessageField(t),
    fields: t.field({
      description: "Every refused field.",
      type: [InvalidField],
      nullable: false,
      resolve: ({ fields }) => [...fields],
    }),
  }),
});

/** The members that every mutation's result has beside its success type. */
export const failureTypes = [
  PaymentServiceError,
  RateLimitError,
  OutcomeUnknownError,
  InvalidInputError,
];
