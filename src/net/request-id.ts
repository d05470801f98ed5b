import { randomUUID } from "node:crypto";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";

/** The header that names a request, in both directions. */
export const requestIdHeader = "x-request-id";

/**
 * The id that ties the log records of a request together: the caller's own if it is well-formed and
 * holds nothing that looks like a card number, since it is logged; else a new one.
 */
export function requestIdOf(given: string | null | undefined): string {
  return given && wellFormed.test(given) && maskCardNumbers(given) === given ? given : randomUUID();
}

const wellFormed = /^[\w.:/+=-]{1,128}$/;
