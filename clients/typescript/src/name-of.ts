import type { DescEnum } from "@bufbuild/protobuf";

/**
 * The name of an enum value, to show it: `nameOf(PaymentStatusSchema, PaymentStatus.SUCCESS)` is
 * `SUCCESS`. For a value that is newer than this package, returns its number as text.
 */
export function nameOf(schema: DescEnum, value: number): string {
  return schema.value[value]?.localName ?? String(value);
}
