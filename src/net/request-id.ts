import { randomUUID } from "node:crypto";
import { maskCardNumbers } from "../secrets/mask-card-numbers.ts";

/** The header that names a request, in both directions. */
export const requestIdHeader = "x-request-id";

/**
 * The id that links the log records of a request. It is the caller's own if that is well-formed
 * and, since it is logged, contains nothing that looks like a card number; else it is a new one.
 */
export function requestIdOf(given: string | null | undefined): string {
  return given && wellFormed.test(given) && maskCardNumbers(given) === given ? given : randomUUID();
}

const wellFormed = /^[\w.:/+=-]{1,128}$/;
