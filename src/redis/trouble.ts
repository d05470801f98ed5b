import { systemCode } from "../net/system-errors.ts";
import { inWords, StoreUnavailable } from "./ask.ts";
import { RedisTimeout } from "./deadline.ts";

/**
 * Why Redis cannot be used, by an error of a connection or a command, without the command, which
 * contains keys and values: a system code such as ECONNREFUSED, or what Redis answered.
 */
export function troubleOf(error: unknown): string {
  if (error instanceof RedisTimeout) return error.message;
  if (error instanceof StoreUnavailable) return troubleOf(error.cause);
  // The driver keeps the error of a cluster's node beside its own.
  const { lastNodeError } = error as { lastNodeError?: unknown };
  const code = systemCode(error) ?? systemCode(lastNodeError);
  // Else the message is from Redis: a code in capitals, then a sentence.
  return code ?? inWords(error as Error);
}
