import { clone, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { mask, redact } from "../secrets/redact.ts";
import { isSecret } from "../secrets/secret-fields.ts";
import { encode } from "../wire/wire.ts";

/**
 * A message as indented JSON of the REST interface. Fields that the proto marks as secret are
 * masked, or left out if they are not strings.
 */
export function maskedMessage<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): string {
  const copy = clone(schema, message);
  maskFields(reflect(schema, copy));
  return redact(encode(schema, copy), { isSecret: () => false, isIdentifier });
}

/** Identifiers are not masked as card numbers: an order's number may look like one. */
function isIdentifier(name: string): boolean {
  return /(?:^|_)(?:id|rrn|mask)$/.test(name);
}

function maskFields(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (isSecret(field)) {
      if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) {
        message.set(field, mask);
      } else {
        message.clear(field);
      }
    } else if (field.fieldKind === "message") {
      maskFields(message.get(field));
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) maskFields(item as ReflectMessage);
    }
  }
}
