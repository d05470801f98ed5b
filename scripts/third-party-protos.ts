/**
 * Writes third_party/: the standard protos that our protos import or that the gateway serves, taken
 * from the npm packages that ship them, so that `buf` needs no registry and no network.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { DescEnum, DescExtension, DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { file_buf_validate_validate as validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

rmSync("third_party", { recursive: true, force: true });
write("buf/validate/validate.proto", printValidate());
copy("grpc-health-check/proto/health/v1/health.proto", "grpc/health/v1/health.proto");
for (const version of ["v1", "v1alpha"]) {
  copy(
    `@grpc/reflection/build/proto/grpc/reflection/${version}/reflection.proto`,
    `grpc/reflection/${version}/reflection.proto`,
  );
}

function write(path: string, text: string): void {
  mkdirSync(dirname(`third_party/${path}`), { recursive: true });
  writeFileSync(`third_party/${path}`, text);
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(`third_party/${to}`), { recursive: true });
  copyFileSync(
    fileURLToPath(new URL(`../node_modules/${from}`, import.meta.url)),
    `third_party/${to}`,
  );
}

/**
 * protovalidate ships its proto as a descriptor only: print it as source, without option values.
 */
function printValidate(): string {
  const lines: string[] = [];
  const line = (depth: number, text: string) => lines.push("  ".repeat(depth) + text);
  line(0, 'syntax = "proto2";');
  line(0, `package ${validate.proto.package};`);
  for (const dependency of validate.proto.dependency) line(0, `import "${dependency}";`);
  extensions(0, validate.extensions);
  for (const message of validate.messages) printMessage(0, message);
  for (const value of validate.enums) printEnum(0, value);
  return `${lines.join("\n")}\n`;

  function typeOf(field: DescField | DescExtension): string {
    if (field.fieldKind === "map") {
      const value =
        field.mapKind === "scalar"
          ? ScalarType[field.scalar].toLowerCase()
          : `.${(field.message ?? field.enum)?.typeName}`;
      return `map<${ScalarType[field.mapKey].toLowerCase()}, ${value}>`;
    }
    if (field.scalar !== undefined) return ScalarType[field.scalar].toLowerCase();
    return `.${(field.message ?? field.enum)?.typeName}`;
  }

  function printField(depth: number, field: DescField | DescExtension): void {
    const bare = field.kind === "field" && (field.oneof !== undefined || field.fieldKind === "map");
    const label = bare ? "" : ["", "optional ", "required ", "repeated "][field.proto.label];
    line(depth, `${label}${typeOf(field)} ${field.name} = ${field.number};`);
  }

  function extensions(depth: number, all: DescExtension[]): void {
    for (const [extendee, group] of Map.groupBy(all, (e) => e.extendee.typeName)) {
      line(depth, `extend .${extendee} {`);
      for (const extension of group) printField(depth + 1, extension);
      line(depth, "}");
    }
  }

  function printMessage(depth: number, message: DescMessage): void {
    line(depth, `message ${message.name} {`);
    for (const member of message.members) {
      if (member.kind !== "oneof") {
        printField(depth + 1, member);
        continue;
      }
      line(depth + 1, `oneof ${member.name} {`);
      for (const field of member.fields) printField(depth + 2, field);
      line(depth + 1, "}");
    }
    for (const range of message.proto.extensionRange) {
      const last = range.end >= 536_870_912 ? "max" : range.end - 1;
      line(depth + 1, `extensions ${range.start} to ${last};`);
    }
    printReserved(depth + 1, message.proto.reservedName, message.proto.reservedRange, -1);
    for (const nested of message.nestedMessages) printMessage(depth + 1, nested);
    for (const nested of message.nestedEnums) printEnum(depth + 1, nested);
    extensions(depth + 1, message.nestedExtensions);
    line(depth, "}");
  }

  function printEnum(depth: number, desc: DescEnum): void {
    line(depth, `enum ${desc.name} {`);
    for (const value of desc.values) line(depth + 1, `${value.name} = ${value.number};`);
    printReserved(depth + 1, desc.proto.reservedName, desc.proto.reservedRange, 0);
    line(depth, "}");
  }

  /** The end of a reserved range is exclusive for messages, inclusive for enums. */
  function printReserved(
    depth: number,
    names: string[],
    ranges: { start: number; end: number }[],
    endOffset: number,
  ): void {
    for (const range of ranges) line(depth, `reserved ${range.start} to ${range.end + endOffset};`);
    if (names.length > 0) line(depth, `reserved ${names.map((n) => `"${n}"`).join(", ")};`);
  }
}
