import { create, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";

/**
 * Fields that GraphQL does not take: callbacks come to the gateway, and
 * the deprecated RID is for trusted services alone. A duration stands beside its whole seconds.
 */
export function isHidden(field: DescField): boolean {
  return (
    field.name === "callback_url" ||
    field.message?.typeName === "google.protobuf.Duration" ||
    (field.parent.name === "CustomerIdentity" && field.name === "rid")
  );
}

/**
 * Whether the members of a message's oneof stand in an object of their own, named as the oneof:
 * `paymentMethod: {type, method: {cc: …}}`. A message that is a oneof and nothing else is itself
 * the object of which one field is given.
 */
export function nestsOneof(desc: DescMessage): boolean {
  return desc.oneofs.length > 0 && desc.fields.some((field) => !field.oneof);
}

/** The request message of a GraphQL input. `null` is absent. */
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

/** Enums come as their numbers, decimals as their text: only messages differ. */
function toField(field: DescField, given: unknown): unknown {
  const item = (value: unknown) =>
    field.message ? toMessage(field.message, value as Record<string, unknown>) : value;
  return field.fieldKind === "list" ? (given as unknown[]).map(item) : item(given);
}

/**
 * A path within a request message as the path within its GraphQL input: `payment_method.cc.number`
 * is `paymentMethod.method.cc.number`. What names no field of the message stays as it is.
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
