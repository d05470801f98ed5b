/** Exit codes of the command line; 64, 69 and 78 are those of sysexits.h. */
export const exitCodes = {
  done: 0,
  /** The result is negative, or the command failed. */
  failed: 1,
  usage: 64,
  /** A server that the command needs does not answer. */
  unavailable: 69,
  config: 78,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/**
 * Ends a command. The message says what is wrong and what to do, and never contains a secret. It is
 * empty where the output already shows the result.
 */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = exitCodes.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** An error for invalid arguments: exit code 64. */
export function wrongUsage(message: string): CommandError {
  return new CommandError(message, exitCodes.usage);
}

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
