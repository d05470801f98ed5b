import type { DescExtension, DescFile, DescService } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";

/** Finds definitions in the files of some services, in further files and in all their imports. */
export interface SymbolIndex {
  file(name: string): DescFile | undefined;
  /** The file of a message, field, oneof, enum, enum value, extension, service or method. */
  fileOf(symbol: string): DescFile | undefined;
  extension(typeName: string, number: number): DescExtension | undefined;
  /** Extension numbers of a message in ascending order; undefined for an unknown message. */
  extensionNumbers(typeName: string): readonly number[] | undefined;
}

export function createSymbolIndex(
  services: readonly DescService[],
  further: readonly DescFile[] = [],
): SymbolIndex {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescExtension>>();

  for (const service of services) addFile(service.file);
  further.forEach(addFile);
  return {
    file: (name) => files.get(name),
    fileOf: (symbol) => symbols.get(symbol),
    extension: (typeName, number) => extensions.get(typeName)?.get(number),
    extensionNumbers: (typeName) => {
      if (!symbols.has(typeName)) return undefined;
      return [...(extensions.get(typeName)?.keys() ?? [])].sort((a, b) => a - b);
    },
  };

  function addFile(file: DescFile): void {
    if (files.has(file.proto.name)) return;
    files.set(file.proto.name, file);
    file.dependencies.forEach(addFile);
    for (const type of nestedTypes(file)) {
      symbols.set(type.typeName, file);
      switch (type.kind) {
        case "message":
          for (const member of type.members) symbols.set(`${type.typeName}.${member.name}`, file);
          for (const field of type.fields) symbols.set(`${type.typeName}.${field.name}`, file);
          break;
        case "enum":
          // An enum's values are in the same scope as the enum, not inside it.
          for (const value of type.values) symbols.set(beside(type.typeName, value.name), file);
          break;
        case "service":
          for (const method of type.methods) symbols.set(`${type.typeName}.${method.name}`, file);
          break;
        case "extension":
          addExtension(type);
          break;
      }
    }
  }

  function addExtension(extension: DescExtension): void {
    const { typeName } = extension.extendee;
    const ofMessage = extensions.get(typeName) ?? new Map<number, DescExtension>();
    extensions.set(typeName, ofMessage.set(extension.number, extension));
  }
}

function beside(typeName: string, name: string): string {
  const dot = typeName.lastIndexOf(".");
  return dot < 0 ? name : `${typeName.slice(0, dot)}.${name}`;
}
