import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** Whether the proto marks a field as secret, by `debug_redact`. */
export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true;
}

/**
 * Takes what the secret fields of a message and of the messages below hold out of it, as a message of
 * the same type that holds nothing else; undefined when there is nothing. `putSecrets` undoes it.
 */
export function takeSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): MessageShape<Desc> | undefined {
  return take(reflect(schema, message))?.message as MessageShape<Desc> | undefined;
}

/** Puts what was taken back into the message that it was taken from, or one like it. */
export function putSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  taken: MessageShape<Desc>,
): void {
  put(reflect(schema, message), reflect(schema, taken));
}

function take(message: ReflectMessage): ReflectMessage | undefined {
  let taken: ReflectMessage | undefined;
  const found = () => {
    taken ??= reflect(message.desc);
    return taken;
  };
  for (const field of secretPaths(message.desc)) {
    if (!message.isSet(field)) continue;
    if (isSecret(field)) {
      found().set(field, message.get(field));
      message.clear(field);
    } else if (field.fieldKind === "message") {
      const below = take(message.get(field));
      if (below) found().set(field, below);
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      const below = [...message.get(field)].map((item) => take(item as ReflectMessage));
      if (!below.some((item) => item)) continue;
      // Each at its index: those without secrets are empty.
      const messages = found().get(field);
      for (const item of below) messages.add(item ?? reflect(field.message));
    } else if (field.fieldKind === "map" && field.mapKind === "message") {
      for (const [key, value] of message.get(field)) {
        const below = take(value as ReflectMessage);
        if (below) found().get(field).set(key, below);
      }
    }
  }
  return taken;
}

function put(message: ReflectMessage, taken: ReflectMessage): void {
  for (const field of secretPaths(message.desc)) {
    if (!taken.isSet(field)) continue;
    if (isSecret(field)) {
      message.set(field, taken.get(field));
    } else if (field.fieldKind === "message") {
      if (message.isSet(field)) put(message.get(field), taken.get(field));
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      const items = [...message.get(field)];
      for (const [index, below] of [...taken.get(field)].entries()) {
        const item = items[index];
        if (item) put(item as ReflectMessage, below as ReflectMessage);
      }
    } else if (field.fieldKind === "map" && field.mapKind === "message") {
      for (const [key, below] of taken.get(field)) {
        const value = message.get(field).get(key);
        if (value) put(value as ReflectMessage, below as ReflectMessage);
      }
    }
  }
}

const known = new WeakMap<DescMessage, readonly DescField[]>();

/** The fields of a type that are secret, and those below which some are. */
function secretPaths(desc: DescMessage): readonly DescField[] {
  let paths = known.get(desc);
  if (!paths) {
    paths = desc.fields.filter((field) => leadsToSecret(field, new Set()));
    known.set(desc, paths);
  }
  return paths;
}

function leadsToSecret(field: DescField, seen: Set<DescMessage>): boolean {
  if (isSecret(field)) return true;
  const below = field.message;
  if (!below || seen.has(below)) return false;
  seen.add(below);
  return below.fields.some((inner) => leadsToSecret(inner, seen));
}
