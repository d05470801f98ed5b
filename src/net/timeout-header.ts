import type { IncomingHttpHeaders } from "node:http";

/**
 * The time-out that a request's headers set (`grpc-timeout`, `connect-timeout-ms`), in
 * milliseconds; infinity if they set none.
 */
export function askedTimeoutMs(headers: IncomingHttpHeaders): number {
  return Math.min(connectTimeoutMs(headers), grpcTimeoutMs(headers));
}

const connectHeader = "connect-timeout-ms";
const grpcHeader = "grpc-timeout";

function connectTimeoutMs({ [connectHeader]: value }: IncomingHttpHeaders): number {
  const isReadable = typeof value === "string" && /^\d{1,10}$/.test(value);
  return isReadable ? Number(value) : Number.POSITIVE_INFINITY;
}

function grpcTimeoutMs({ [grpcHeader]: value }: IncomingHttpHeaders): number {
  const match = typeof value === "string" ? /^(\d{1,8})([HMSmun])$/.exec(value) : null;
  return match ? Number(match[1]) * unitMs[match[2] as Unit] : Number.POSITIVE_INFINITY;
}

type Unit = keyof typeof unitMs;
const unitMs = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 } as const;
