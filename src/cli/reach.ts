import { closed, reasonOf, systemCode } from "../net/system-errors.ts";

/** Says what cannot be reached and what to do. `why` is a system error code or any text. */
export function unreachable(what: string, url: string, why: string, option: string): string {
  // The server may close the connection before its reason is read.
  const perhaps =
    url.startsWith("https:") && closed.test(why) ? ": it may ask for a client certificate" : "";
  return `cannot reach ${what} at ${url}: ${reasonOf(why)}${perhaps}. Is it running there? Else give ${option}`;
}

/** A short reason why a request over HTTP failed. */
export function fetchFault(error: unknown): string {
  const code = systemCode(error);
  if (code !== undefined) return code;
  if (!(error instanceof Error)) return "failed";
  const { cause } = error;
  if ([error, cause].some((one) => one instanceof Error && one.name === "TimeoutError"))
    return "no answer in time";
  // undici's message, such as "bad port".
  return cause instanceof Error ? cause.message : error.message;
}
