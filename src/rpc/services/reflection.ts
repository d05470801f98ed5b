import {
  type DescFile,
  type DescService,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { createSymbolIndex, type SymbolIndex } from "./symbol-index.ts";

/** The services of server reflection: both versions, since tools differ in which they ask first. */
export const reflectionServices = [ServerReflection, ServerReflectionV1Alpha] as const;

/** Server reflection: tells tools such as `buf curl` the schema of the given services. */
export function addReflection(router: ConnectRouter, services: readonly DescService[]): void {
  const index = createSymbolIndex(services);
  const names = services.map((service) => ({ name: service.typeName }));
  const service: ServiceImpl<typeof ServerReflection> = {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(request.messageRequest, index, names),
        };
      }
    },
  };
  router.service(ServerReflection, service);
  // The versions differ in their package's name alone.
  router.service(
    ServerReflectionV1Alpha,
    service as unknown as ServiceImpl<typeof ServerReflectionV1Alpha>,
  );
}

type Answer = NonNullable<
  MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]
>;

function answer(
  question: ServerReflectionRequest["messageRequest"],
  index: SymbolIndex,
  services: { name: string }[],
): Answer {
  switch (question.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: services } };
    case "fileByFilename":
      return fileAnswer(index.file(question.value));
    case "fileContainingSymbol":
      return fileAnswer(index.fileOf(question.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      return fileAnswer(index.extension(containingType, extensionNumber)?.file);
    }
    case "allExtensionNumbersOfType": {
      const numbers = index.extensionNumbers(question.value);
      if (!numbers) return failure(Code.NotFound, "unknown message");
      return {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: question.value, extensionNumber: [...numbers] },
      };
    }
    default:
      return failure(Code.InvalidArgument, "the request asks nothing");
  }
}

function fileAnswer(file: DescFile | undefined): Answer {
  if (!file) return failure(Code.NotFound, "not found");
  const all = withDependencies(file);
  const fileDescriptorProto = all.map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function withDependencies(file: DescFile, found = new Set<DescFile>()): DescFile[] {
  if (!found.has(file)) {
    found.add(file);
    for (const dependency of file.dependencies) withDependencies(dependency, found);
  }
  return [...found];
}

function failure(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
