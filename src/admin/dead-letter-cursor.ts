import { z } from "zod";
import { GatewayError } from "../errors.ts";

export type Order = "newest" | "oldest";

/** Where a list of dead letters goes on, as a client holds it: the last place of each account. */
export function writeCursor(places: ReadonlyMap<string, string>, order: Order): string {
  return Buffer.from(JSON.stringify([order, ...places])).toString("base64url");
}

/**
 * Without a cursor there are none.
 * @throws GatewayError INVALID_ARGUMENT for text that never was a cursor of this order
 */
export function placesOf(cursor: string | undefined, order: Order): Map<string, string> {
  if (cursor === undefined) return new Map();
  try {
    const [ofOrder, ...places] = shape.parse(
      JSON.parse(Buffer.from(cursor, "base64url").toString()),
    );
    if (ofOrder === order) return new Map(places);
  } catch {
    // It says no more than the order that does not fit.
  }
  const message = "cursor: it is not the next_cursor of a list in this order";
  throw new GatewayError("INVALID_ARGUMENT", message);
}

const shape = z.tuple([z.enum(["newest", "oldest"])], z.tuple([z.string(), z.string()]));
