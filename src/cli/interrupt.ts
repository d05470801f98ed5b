import { exitCodes } from "./command-error.ts";

/**
 * Aborts at the first SIGINT or SIGTERM, for commands that have something to finish; the second one
 * ends the process at once.
 */
export function interruption(): AbortSignal {
  const interrupted = new AbortController();
  const onSignal = () => {
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return interrupted.signal;
}
