import { GatewayError } from "../../errors.ts";

/** What a read finds; null when there is no such thing. Other failures stand. */
export async function orNull<Value>(read: Promise<Value>): Promise<Value | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "NOT_FOUND") return null;
    throw error;
  }
}

/** Goes on with what is known at once, at once. */
export function whenKnown<Value, Shown>(
  value: Value | Promise<Value>,
  show: (value: Value) => Shown,
): Shown | Promise<Shown> {
  return value instanceof Promise ? value.then(show) : show(value);
}
