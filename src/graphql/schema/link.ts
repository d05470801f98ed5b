import { GatewayError } from "../../errors.ts";

/** The result of a read, or null if it fails with NOT_FOUND. @throws its other errors */
export async function orNull<Value>(read: Promise<Value>): Promise<Value | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "NOT_FOUND") return null;
    throw error;
  }
}
