import SchemaBuilder from "@pothos/core";
import type { Context } from "../context.ts";

/** A scalar that is a string both ways; its format is checked with the rest of a request. */
type TextScalar = { Input: string; Output: string };

/** The one schema builder: each type's file adds to it, and `schema.ts` builds what they added. */
export const builder = new SchemaBuilder<{
  Context: Context;
  Scalars: {
    ID: { Input: string; Output: string };
    Decimal: TextScalar;
    DateTime: {
      Input: { seconds: bigint; nanos: number };
      Output: { seconds: bigint; nanos: number };
    };
    BigInt: { Input: never; Output: bigint };
    UUID: TextScalar;
    URL: TextScalar;
    EmailAddress: TextScalar;
    IPv4: TextScalar;
  };
}>({});
