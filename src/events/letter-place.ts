import { GatewayError } from "../errors.ts";

/**
 * The number that a place of a dead letter stands for; undefined without one.
 * @throws GatewayError INVALID_ARGUMENT
 */
export function numberOf(place: string | undefined): number | undefined {
  if (place === undefined) return undefined;
  if (/^\d{1,16}$/.test(place)) return Number(place);
  throw new GatewayError("INVALID_ARGUMENT", "the cursor is not one of a list of dead letters");
}
