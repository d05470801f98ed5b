import { create, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";

/**
 * Whether a field is left out of GraphQL inputs. Callbacks go to the gateway, the deprecated RID is
 * for trusted services only, and a duration has another field with its whole seconds.
 */
export function isHidden(field: DescField): boolean {
  return (
    field.name === "callback_url" ||
    field.message?.typeName === "google.protobuf.Duration" ||
    (field.parent.name === "CustomerIdentity" && field.name === "rid")
  );
}

/**
 * Whether the members of a message's oneof are in an input object of their own, named after the
 * oneof: `paymentMethod: {type, method: {cc: …}}`. A message with nothing but a oneof is itself the
 * object of which one field is given.
 */
export function nestsOneof(desc: DescMessage): boolean {
  return desc.oneofs.length > 0 && desc.fields.some((field) => !field.oneof);
}

/** Converts a GraphQL input to a request message. `null` counts as absent. */
export function toMessage<Desc extends DescMessage>(
  desc: Desc,
  input: Readonly<Record<string, unknown>>,
): MessageShape<Desc> {
  const message: Record<string, unknown> = create(desc);
  for (const field of desc.fields) {
    const holder = field.oneof && nestsOneof(desc) ? input[field.oneof.localName] : input;
    const given = (holder as Readonly<Record<string, unknown>> | null | undefined)?.[
      field.localName
    ];
    if (given === null || given === undefined) continue;
    const value = toField(field, given);
    if (field.oneof) message[field.oneof.localName] = { case: field.localName, value };
    else message[field.localName] = value;
  }
  return message as MessageShape<Desc>;
}

/** Enums are numbers and decimals are text already: only messages are converted. */
function toField(field: DescField, given: unknown): unknown {
  const item = (value: unknown) =>
    field.message ? toMessage(field.message, value as Record<string, unknown>) : value;
  return field.fieldKind === "list" ? (given as unknown[]).map(item) : item(given);
}

/**
 * Converts a path in a request message to the path in its GraphQL input: `payment_method.cc.number`
 * becomes `paymentMethod.method.cc.number`. A path that names no field stays as it is.
 */
export function toInputPath(desc: DescMessage, path: string): string {
  const [head = "", ...rest] = path.split(".");
  const [name = "", index = ""] = head.split(/(?=\[)/, 2);
  const oneof = desc.oneofs.find((candidate) => candidate.name === name);
  if (oneof) return [oneof.localName, ...rest].join(".");
  const field = desc.fields.find((candidate) => candidate.name === name);
  if (!field) return path;
  const here = `${field.oneof && nestsOneof(desc) ? `${field.oneof.localName}.` : ""}${field.localName}${index}`;
  if (rest.length === 0) return here;
  const below = rest.join(".");
  return `${here}.${field.message ? toInputPath(field.message, below) : below}`;
}
