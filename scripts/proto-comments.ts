import { execFileSync } from "node:child_process";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The proto files as `buf` reads them, with comments, which the generated code lacks. */
export function readProtos(): FileDescriptorSet {
  const options = { maxBuffer: 64 * 1024 * 1024 };
  const image = execFileSync("buf", ["build", "--as-file-descriptor-set", "-o", "-"], options);
  return fromBinary(FileDescriptorSetSchema, image);
}

/**
 * The comments of the contract, each paragraph as one line, by name: `Message`, `Message.field`,
 * `Message.oneof`, `Enum`, `ENUM_VALUE`, `Service`, `Service.Method`.
 */
export function commentsOf({ file: files }: FileDescriptorSet): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of files.filter((each) => each.package === "payments.v1")) {
    const locations = file.sourceCodeInfo?.location ?? [];
    const at = new Map(locations.map((l) => [l.path.join("."), l.leadingComments]));
    // Paths consist of field numbers of descriptor.proto.
    const add = (name: string, path: string) => {
      const comment = at.get(path);
      if (comment) found.set(name, flowing(comment));
    };
    file.messageType.forEach((message, m) => {
      add(message.name, `4.${m}`);
      message.field.forEach((field, f) => {
        add(`${message.name}.${field.name}`, `4.${m}.2.${f}`);
      });
      message.oneofDecl.forEach((oneof, o) => {
        add(`${message.name}.${oneof.name}`, `4.${m}.8.${o}`);
      });
    });
    file.enumType.forEach((type, e) => {
      add(type.name, `5.${e}`);
      type.value.forEach((value, v) => {
        add(value.name, `5.${e}.2.${v}`);
      });
    });
    file.service.forEach((service, s) => {
      add(service.name, `6.${s}`);
      service.method.forEach((method, m) => {
        add(`${service.name}.${method.name}`, `6.${s}.2.${m}`);
      });
    });
  }
  return found;
}

function flowing(comment: string): string {
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, " "))
    .join("\n\n");
}
