import { GatewayError } from "../errors.ts";

/**
 * Parses the place of a dead letter (`StoredDeadLetter.place`); undefined if there is none.
 * @throws GatewayError INVALID_ARGUMENT for text that is not a place
 */
export function numberOf(place: string | undefined): number | undefined {
  if (place === undefined) return undefined;
  if (/^\d{1,16}$/.test(place)) return Number(place);
  throw new GatewayError("INVALID_ARGUMENT", "the cursor is not one of a list of dead letters");
}
