import {
  createRegistry,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type Registry,
} from "@bufbuild/protobuf";

/** Finds definitions in files. */
export interface SymbolIndex {
  file(name: string): DescFile | undefined;
  /** The file of a message, field, oneof, enum, enum value, extension, service or method. */
  fileOf(symbol: string): DescFile | undefined;
  extension(typeName: string, number: number): DescExtension | undefined;
  /** Extension numbers of a message in ascending order; undefined for an unknown message. */
  extensionNumbers(typeName: string): readonly number[] | undefined;
}

export function createSymbolIndex(all: readonly DescFile[]): SymbolIndex {
  const files = new Map(all.map((file) => [file.proto.name, file]));
  const types = createRegistry(...files.values());
  const symbols = new Map<string, DescFile>();
  for (const type of types) for (const name of namesIn(type)) symbols.set(name, type.file);

  return {
    file: (name) => files.get(name),
    fileOf: (symbol) => symbols.get(symbol),
    extension(typeName, number) {
      const extended = types.getMessage(typeName);
      return extended && types.getExtensionFor(extended, number);
    },
    extensionNumbers(typeName) {
      const extended = types.getMessage(typeName);
      return extended && extensionsOf(extended, types).sort((a, b) => a - b);
    },
  };
}

function extensionsOf({ typeName }: DescMessage, types: Registry): number[] {
  return [...types].flatMap((type) =>
    type.kind === "extension" && type.extendee.typeName === typeName ? type.number : [],
  );
}

/** The names of a type and of what is defined in it, besides other types. */
function namesIn(type: ReturnType<Registry["get"]> & object): string[] {
  const { typeName } = type;
  const within = (members: readonly { readonly name: string }[], scope = `${typeName}.`) =>
    members.map(({ name }) => scope + name);
  switch (type.kind) {
    case "message":
      return [typeName, ...within(type.fields), ...within(type.oneofs)];
    case "enum":
      // An enum's values are in the same scope as the enum, not inside it.
      return [typeName, ...within(type.values, typeName.slice(0, -type.name.length))];
    case "service":
      return [typeName, ...within(type.methods)];
    case "extension":
      return [typeName];
  }
}
