import { createHash } from "node:crypto";
import { invalidFields } from "./validate.ts";

/** A page token: a place in a list, valid only for a list with the same name. */
export function pageTokenOf(list: readonly unknown[], place: string): string {
  const name = JSON.stringify(list);
  const digest = createHash("sha256").update(name).digest("base64url").slice(0, 8);
  return Buffer.from(`${digest}${place}`).toString("base64url");
}

/**
 * The place that a page token names; undefined for an empty one, which names the list's start.
 * @param form what a place looks like
 * @throws GatewayError INVALID_ARGUMENT for a text that is not a token of this list
 */
export function placeOfToken(
  list: readonly unknown[],
  token: { readonly text: string; readonly field: string },
  form: RegExp,
): string | undefined {
  if (token.text === "") return undefined;
  const place = Buffer.from(token.text, "base64url").toString().slice(8);
  if (form.test(place) && pageTokenOf(list, place) === token.text) return place;
  throw invalidFields([{ path: token.field, message: "is not a token of this list" }]);
}
