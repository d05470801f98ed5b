/** Says what cannot be reached and what to do. `why` is a system error code or any text. */
export function unreachable(what: string, url: string, why: string, option: string): string {
  return `cannot reach ${what} at ${url}: ${reasons[why] ?? why}. Is it running there? Else give ${option}`;
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there (ECONNREFUSED)",
  ENOTFOUND: "there is no such host (ENOTFOUND)",
  ECONNRESET: "the connection was reset (ECONNRESET)",
};

/** The first system error code in an error's chain of causes, such as ECONNREFUSED. */
export function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    const inner = at instanceof AggregateError ? (at.errors[0] as unknown) : at;
    const { code } = inner as NodeJS.ErrnoException;
    if (typeof code === "string" && /^(E[A-Z]+|ERR_|CERT_|DEPTH_|SELF_|UNABLE_|UND_)/.test(code))
      return code;
  }
  return undefined;
}

/** A short reason why `fetch` rejected. */
export function fetchFault(error: unknown): string {
  const code = systemCode(error);
  if (code !== undefined) return code;
  if (!(error instanceof Error)) return "failed";
  if (error.name === "TimeoutError") return "no answer in time";
  // undici's message, such as "bad port".
  return error.cause instanceof Error ? error.cause.message : error.message;
}
