import { CommandError, exitCodes } from "./command-error.ts";

/**
 * A signal that aborts at the first SIGINT or SIGTERM, so that a command can finish its work; its
 * reason is the CommandError that then ends it. A second one ends the process at once.
 */
export function interruption(): AbortSignal {
  const interrupted = new AbortController();
  const onSignal = () => {
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort(new CommandError("interrupted", exitCodes.interrupted));
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return interrupted.signal;
}
