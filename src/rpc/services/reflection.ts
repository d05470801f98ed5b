import {
  createRegistry,
  type DescFile,
  type DescService,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { oncePer } from "../../collections/once-per.ts";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.ts";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { file_payments_v1_error } from "../../gen/payments/v1/error_pb.ts";
import { withImports } from "../../model/contract.ts";
import { turnOf } from "../../net/overloaded.ts";
import type { AnonymousCall, ServingOptions } from "../methods.ts";
import type { Implementation } from "./routes.ts";

/**
 * The services of server reflection: both versions, since tools differ in which they ask first. They
 * differ only in the name of their package.
 */
export const reflectionServices = [ServerReflection, ServerReflectionV1Alpha] as const;

/**
 * Server reflection: it gives tools such as `buf curl` the schema of the given services and of the
 * details of their errors. Each question waits for its turn among the calls.
 */
export function createReflection(
  services: readonly DescService[],
  { admission, report }: Pick<ServingOptions, "admission" | "report">,
): Implementation<typeof ServerReflection, AnonymousCall> {
  const answerOf = createAnswers(services);
  const onRefused = () => report("refused", { listener: "rpc", kind: "other" });
  return {
    async *serverReflectionInfo(requests, call) {
      for await (const request of requests) {
        const slot = await turnOf(admission, "other", call, onRefused);
        try {
          call.signal.throwIfAborted();
          const messageResponse = answerOf(request.messageRequest);
          yield { validHost: request.host, originalRequest: request, messageResponse };
        } finally {
          slot.leave();
        }
      }
    },
  };
}

type ReflectionResponse = NonNullable<
  MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]
>;

/** Answers questions about the given services. The answer for each file is encoded once. */
export function createAnswers(
  services: readonly DescService[],
): (question: ServerReflectionRequest["messageRequest"]) => ReflectionResponse {
  const roots = [...services.map(({ file }) => file), ...errorDetails];
  const files = new Map(withImports(roots).map((file) => [file.proto.name, file]));
  const fileOfSymbol = new Map<string, DescFile>();
  for (const type of createRegistry(...files.values())) {
    fileOfSymbol.set(type.typeName, type.file);
    if (type.kind !== "service") continue;
    for (const { name } of type.methods) fileOfSymbol.set(`${type.typeName}.${name}`, type.file);
  }
  const names = services.map((service) => ({ name: service.typeName }));
  const encoded = oncePer((file: DescFile): ReflectionResponse => {
    const fileDescriptorProto = withImports([file]).map(bytesOf);
    return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
  });
  const fileAnswer = (file: DescFile | undefined) =>
    file ? encoded(file) : failure(Code.NotFound, "not found");

  return (question) => {
    switch (question.case) {
      case "listServices":
        return { case: "listServicesResponse", value: { service: names } };
      case "fileByFilename":
        return fileAnswer(files.get(question.value));
      case "fileContainingSymbol":
        return fileAnswer(fileOfSymbol.get(question.value));
      case "fileContainingExtension":
      case "allExtensionNumbersOfType":
        return failure(Code.Unimplemented, "no message of these calls has extensions");
      default:
        return failure(Code.InvalidArgument, "the request asks nothing");
    }
  };
}

/** The files of error details, to which no method's request or response refers. */
const errorDetails = [file_payments_v1_error, file_google_rpc_error_details];

/** Many files import the same ones, so each is encoded once. */
const bytesOf = oncePer((file: DescFile) => toBinary(FileDescriptorProtoSchema, file.proto));

function failure(errorCode: Code, errorMessage: string): ReflectionResponse {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
