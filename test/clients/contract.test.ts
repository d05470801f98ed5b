import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { clone, equals, fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

const root = join(import.meta.dirname, "../..");
const image = execFileSync(
  join(root, "node_modules/.bin/buf"),
  ["build", "--exclude-source-info", "--as-file-descriptor-set", "--output", "-"],
  { cwd: root, maxBuffer: 64 * 1024 * 1024 },
);
const files = new Map(
  fromBinary(FileDescriptorSetSchema, image).file.map((file) => [file.name, file]),
);

test("a clone has the validation rules of the package that checks them", () => {
  const committed = withoutJsonNames(files.get("buf/validate/validate.proto")!);
  const installed = withoutJsonNames(file_buf_validate_validate.proto);
  assert.ok(equals(FileDescriptorProtoSchema, committed, installed));
  committed.messageType.pop();
  assert.ok(!equals(FileDescriptorProtoSchema, committed, installed), "a control");
});

test("google.rpc is whole, so that it agrees with the package that each language has", () => {
  const { options, messageType } = files.get("google/rpc/error_details.proto")!;
  assert.equal(
    options?.goPackage,
    "google.golang.org/genproto/googleapis/rpc/errdetails;errdetails",
  );
  assert.equal(options?.javaPackage, "com.google.rpc");
  assert.deepEqual(messageType.map(({ name }) => name).sort(), [
    "BadRequest",
    "DebugInfo",
    "ErrorInfo",
    "Help",
    "LocalizedMessage",
    "PreconditionFailure",
    "QuotaFailure",
    "RequestInfo",
    "ResourceInfo",
    "RetryInfo",
  ]);
});

test("options have numbers from a range that no well-known module uses", () => {
  const own = [...files.values()].filter((file) => file.package === "payments.v1");
  const numbers = own.flatMap(({ extension }) => extension.map(({ number }) => number));
  assert.ok(numbers.length > 8, `${numbers.length} options`);
  assert.deepEqual(
    numbers.filter((number) => number < 94_256 || number > 94_299),
    [],
  );
});

/** Compilers agree on these names, and not all write them. */
function withoutJsonNames(file: FileDescriptorProto): FileDescriptorProto {
  const copy = clone(FileDescriptorProtoSchema, file);
  const forget = ({ field, extension, nestedType }: DescriptorProto) => {
    for (const one of [...field, ...extension]) one.jsonName = "";
    nestedType.forEach(forget);
  };
  copy.messageType.forEach(forget);
  for (const one of copy.extension) one.jsonName = "";
  return copy;
}
