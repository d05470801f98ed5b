import { clone, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { mask, redact } from "../secrets/redact.ts";
import { isSecret } from "../secrets/secret-fields.ts";
import { encode } from "../wire/wire.ts";

/**
 * A message as the REST interface would write it, indented, with its secret fields masked by the
 * proto's word for them.
 */
export function maskedMessage<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): string {
  const copy = clone(schema, message);
  maskFields(reflect(schema, copy));
  return redact(encode(schema, copy), { isSecret: () => false, isIdentifier });
}

/** An order's number may well pass for a card's. */
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
