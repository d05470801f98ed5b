import { hash } from "node:crypto";
import { invalidFields } from "../errors.ts";

/**
 * The page tokens of a list: each names a place in it, and is valid only for a list with the same
 * name.
 * @param form what a place looks like
 */
export function pageTokens(name: readonly unknown[], form: RegExp) {
  const digest = hash("sha256", JSON.stringify(name), "base64url").slice(0, 8);
  const tokenOf = (place: string) => Buffer.from(`${digest}${place}`).toString("base64url");
  return {
    tokenOf,
    /**
     * The place that a token names; undefined for an empty one, which names the list's start.
     * @throws GatewayError INVALID_ARGUMENT for a text that is not a token of this list
     */
    placeOf(text: string, field: string): string | undefined {
      if (text === "") return undefined;
      const place = Buffer.from(text, "base64url").toString().slice(8);
      if (form.test(place) && tokenOf(place) === text) return place;
      throw invalidFields([{ path: field, message: "is not a token of this list" }]);
    },
  };
}
