/** How the command line ends; 64, 69 and 78 are those of sysexits.h. */
export const exitCodes = {
  done: 0,
  /** The answer is no, or it did not work. */
  failed: 1,
  usage: 64,
  /** What the command needs to reach does not answer. */
  unavailable: 69,
  config: 78,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends a command: the message says what is wrong and what to do, and never holds a secret. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = exitCodes.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Ends a command without a word: what there is to say was printed. */
export class QuietEnd extends CommandError {
  constructor(exitCode: ExitCode = exitCodes.failed) {
    super("", exitCode);
  }
}

/** Arguments that do not fit: exit code 64. */
export function wrongUsage(message: string): CommandError {
  return new CommandError(message, exitCodes.usage);
}
