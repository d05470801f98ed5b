import {
  clearField,
  create,
  type DescField,
  type DescMessage,
  isFieldSet,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** Whether the proto marks a field as secret, by `debug_redact`. */
export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true;
}

/** A message in two parts: without its secrets, and its secrets alone. */
export interface Split<Desc extends DescMessage> {
  /** The message itself if it has no secrets; else a copy that shares its parts without secrets. */
  readonly open: MessageShape<Desc>;
  /** A message of the same type that holds only the secrets; undefined when there are none. */
  readonly secrets: MessageShape<Desc> | undefined;
}

/**
 * Separates the secret fields of a message, and of the messages in it, from everything else. The
 * message itself is not changed. `putSecrets` joins the two parts again.
 */
export function splitSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): Split<Desc> {
  const { open, secrets } = split(schema, message as Fields) ?? { open: message };
  return { open, secrets } as Split<Desc>;
}

/** Puts secrets back into the message that they were split from, or one like it. */
export function putSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  secrets: MessageShape<Desc>,
): void {
  put(reflect(schema, message), reflect(schema, secrets));
}

/** A message as a plain object: reflection would copy all of it. */
type Fields = Message & Record<string, unknown>;

function split(desc: DescMessage, message: Fields): { open: Fields; secrets: Fields } | undefined {
  let found: { open: Fields; secrets: Fields } | undefined;
  for (const field of secretPaths(desc)) {
    if (!isFieldSet(message, field)) continue;
    const parts = splitField(field, fieldOf(message, field));
    if (!parts) continue;
    found ??= { open: { ...message }, secrets: create(desc) as Fields };
    setField(found.secrets, field, parts.secrets);
    if (parts.open === undefined) clearField(found.open, field);
    else setField(found.open, field, parts.open);
  }
  return found;
}

/** @returns undefined for a field without secrets; `open` is undefined for one that is a secret */
function splitField(
  field: DescField,
  value: unknown,
): { open?: unknown; secrets: unknown } | undefined {
  if (isSecret(field)) return { secrets: value };
  if (field.fieldKind === "message") return split(field.message, value as Fields);
  if (field.fieldKind === "list" && field.listKind === "message") {
    const { message } = field;
    const items = value as readonly Fields[];
    const below = items.map((item) => split(message, item));
    if (!below.some((item) => item)) return undefined;
    return {
      open: below.map((item, at) => item?.open ?? items[at]),
      // Each item keeps its index: items without secrets are empty messages.
      secrets: below.map((item) => item?.secrets ?? create(message)),
    };
  }
  if (field.fieldKind === "map" && field.mapKind === "message") {
    const { message } = field;
    const open = { ...(value as Record<string, Fields>) };
    const secrets: Record<string, Fields> = {};
    for (const [key, item] of Object.entries(open)) {
      const below = split(message, item);
      if (below) [open[key], secrets[key]] = [below.open, below.secrets];
    }
    return Object.keys(secrets).length > 0 ? { open, secrets } : undefined;
  }
  return undefined;
}

function fieldOf(message: Fields, { oneof, localName }: DescField): unknown {
  return oneof ? (message[oneof.localName] as { value?: unknown }).value : message[localName];
}

function setField(message: Fields, { oneof, localName }: DescField, value: unknown): void {
  if (oneof) message[oneof.localName] = { case: localName, value };
  else message[localName] = value;
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

/** The fields of a type that are secret or contain secret fields. */
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
