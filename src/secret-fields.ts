import { clone, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** Whether the proto marks a field as secret, by `debug_redact`. */
export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true;
}

/**
 * A message as it may be stored: what its secret fields and those of the messages below hold is
 * left out, and so is what this contract does not know. The message itself is not changed.
 */
export function withoutSecrets<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): MessageShape<Desc> {
  const copy = clone(schema, message);
  clear(reflect(schema, copy));
  return copy;
}

function clear(message: ReflectMessage): void {
  if (message.getUnknown()?.length) message.setUnknown([]);
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (isSecret(field)) {
      message.clear(field);
    } else if (field.fieldKind === "message") {
      clear(message.get(field));
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) clear(item as ReflectMessage);
    } else if (field.fieldKind === "map" && field.mapKind === "message") {
      for (const item of message.get(field).values()) clear(item as ReflectMessage);
    }
  }
}
