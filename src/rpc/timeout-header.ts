import type { IncomingHttpHeaders } from "node:http";

/** Longest a timer of Node can run: one that is set for longer fires at once. */
export const maxTimerMs = 2 ** 31 - 1;

/**
 * Shortens, in place, a time-out that a request's headers ask for (`grpc-timeout`,
 * `connect-timeout-ms`) to `maxMs`: a server may end a call sooner than its caller would. What cannot
 * be read is left for Connect to refuse.
 */
export function capTimeout(headers: IncomingHttpHeaders, maxMs: number): void {
  const connect = headers["connect-timeout-ms"];
  if (typeof connect === "string" && /^\d{1,10}$/.test(connect) && Number(connect) > maxMs) {
    headers["connect-timeout-ms"] = String(maxMs);
  }
  const grpc = headers["grpc-timeout"];
  const match = typeof grpc === "string" ? /^(\d{1,8})([HMSmun])$/.exec(grpc) : null;
  if (match && Number(match[1]) * unitMs[match[2] as Unit] > maxMs) {
    // In seconds, since the header has room for eight digits.
    headers["grpc-timeout"] = `${Math.floor(maxMs / 1000)}S`;
  }
}

type Unit = keyof typeof unitMs;
const unitMs = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 } as const;
