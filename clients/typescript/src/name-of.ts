import type { DescEnum } from "@bufbuild/protobuf";

/**
 * What to show of an enum's value: `nameOf(PaymentStatusSchema, PaymentStatus.SUCCESS)` is
 * `SUCCESS`. A value that is newer than this package shows as its number.
 */
export function nameOf(schema: DescEnum, value: number): string {
  return schema.value[value]?.localName ?? String(value);
}
