import type { Cluster, Redis } from "ioredis";

/** Called after each command was answered or has failed. */
export type OnCommand = (command: {
  readonly name: string;
  readonly failed: boolean;
  readonly durationMs: number;
}) => void;

/** Reports every command of a client, including those in pipelines. */
export function observeCommands(client: Redis | Cluster, onCommand: OnCommand): void {
  const observed = client as Redis;
  const send = observed.sendCommand;
  observed.sendCommand = (command, ...rest) => {
    const startedMs = performance.now();
    const report = (failed: boolean) =>
      onCommand({ name: command.name, failed, durationMs: performance.now() - startedMs });
    command.promise.then(
      () => report(false),
      () => report(true),
    );
    return send.call(observed, command, ...rest);
  };
}
