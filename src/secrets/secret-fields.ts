import {
  clearField,
  create,
  type DescField,
  type DescMessage,
  isFieldSet,
  type Message,
  type MessageShape,
  mergeFromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { oncePer } from "../collections/once-per.ts";

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
 * @param mask stands in `open` in place of each secret that is a string; default: nothing does
 * @throws Error for a type with secrets in a list or a map: no stored message and no request has any
 */
export function splitSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  mask?: string,
): Split<Desc> {
  return split(schema, message as Fields, mask) as Split<Desc>;
}

/** Puts secrets back into the message that they were split from, or one like it. */
export function putSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  secrets: MessageShape<Desc>,
): void {
  mergeFromBinary(schema, message, toBinary(schema, secrets));
}

/** A message as a plain object: reflection would copy all of it. */
type Fields = Message & Record<string, unknown>;

function split(desc: DescMessage, message: Fields, mask?: string) {
  let open = message;
  let secrets: Fields | undefined;
  for (const field of secretPaths(desc)) {
    if (!isFieldSet(message, field)) continue;
    const value = fieldOf(message, field);
    const parts: { open: unknown; secrets: unknown } =
      field.message && !isSecret(field)
        ? split(field.message, value as Fields, mask)
        : { open: typeof value === "string" ? mask : undefined, secrets: value };
    if (parts.secrets === undefined) continue;
    if (!secrets) [open, secrets] = [{ ...message }, create(desc) as Fields];
    setField(secrets, field, parts.secrets);
    if (parts.open === undefined) clearField(open, field);
    else setField(open, field, parts.open);
  }
  return { open, secrets };
}

function fieldOf(message: Fields, { oneof, localName }: DescField): unknown {
  return oneof ? (message[oneof.localName] as { value?: unknown }).value : message[localName];
}

function setField(message: Fields, { oneof, localName }: DescField, value: unknown): void {
  if (oneof) message[oneof.localName] = { case: localName, value };
  else message[localName] = value;
}

/** The fields of a type that are secret or contain secret fields. */
const secretPaths = oncePer((desc: DescMessage): readonly DescField[] => {
  const paths = desc.fields.filter((field) => leadsToSecret(field, new Set()));
  const many = paths.find(({ fieldKind }) => fieldKind === "list" || fieldKind === "map");
  if (many) throw new Error(`${many}: the secrets of a list or a map cannot be split off`);
  return paths;
});

function leadsToSecret(field: DescField, seen: Set<DescMessage>): boolean {
  if (isSecret(field)) return true;
  const below = field.message;
  if (!below || seen.has(below)) return false;
  seen.add(below);
  return below.fields.some((inner) => leadsToSecret(inner, seen));
}
