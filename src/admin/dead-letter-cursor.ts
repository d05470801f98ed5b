import { z } from "zod";
import { GatewayError } from "../errors.ts";

export type Order = "newest" | "oldest";

/** The cursor of the next page of dead letters: each account's place of its last listed letter. */
export function writeCursor(places: ReadonlyMap<string, string>, order: Order): string {
  return Buffer.from(JSON.stringify([order, ...places])).toString("base64url");
}

/**
 * The places that a cursor holds, by account; none without a cursor.
 * @throws GatewayError INVALID_ARGUMENT for text that is not a cursor of this order
 */
export function placesOf(cursor: string | undefined, order: Order): Map<string, string> {
  if (cursor === undefined) return new Map();
  try {
    const [ofOrder, ...places] = shape.parse(
      JSON.parse(Buffer.from(cursor, "base64url").toString()),
    );
    if (ofOrder === order) return new Map(places);
  } catch {
    // An unreadable cursor gets the same error as one of the other order.
  }
  const message = "cursor: it is not the next_cursor of a list in this order";
  throw new GatewayError("INVALID_ARGUMENT", message);
}

const shape = z.tuple([z.enum(["newest", "oldest"])], z.tuple([z.string(), z.string()]));
