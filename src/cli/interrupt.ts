import { exitCodes } from "./command-error.ts";

/**
 * A signal that aborts at the first SIGINT or SIGTERM, so that a command can finish its work. A
 * second one ends the process at once.
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
