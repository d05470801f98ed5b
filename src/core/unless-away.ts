import { GatewayError } from "../errors.ts";

/**
 * What the store knows beside an answer that moved money; undefined while it cannot be asked. The
 * caller gets its answer all the same: an error would say that nothing was sent.
 */
export async function unlessAway<T>(known: Promise<T>): Promise<T | undefined> {
  try {
    return await known;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "UNAVAILABLE") return undefined;
    throw error;
  }
}
