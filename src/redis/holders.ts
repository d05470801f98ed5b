import type { ChainableCommander } from "ioredis";
import type { ServerAddress } from "./sentinels.ts";

/** Finds out whether enough servers hold what a connection wrote. */
export interface Holders {
  /** Adds the commands that find this out, after the writes; replicas have `ms` to acknowledge. */
  queue(pipeline: ChainableCommander, ms: number): void;
  /** Returns why the writes do not count as written, by the answers; undefined if they do. */
  missing(answers: PipelineAnswers, asked: Question): Promise<Error | undefined>;
}

export type PipelineAnswers = readonly (readonly [error: Error | null, answer: unknown])[];

export interface Question {
  /** The server that was asked, by the Sentinels' address for it. */
  readonly primary: ServerAddress | undefined;
  /** Asks once more on the same connection; replicas have `ms` to acknowledge. */
  again(ms: number): Promise<PipelineAnswers>;
}

/**
 * Requires that `min` replicas hold the writes, whichever they are: a failover to another replica
 * loses the writes.
 */
export class SomeReplicas implements Holders {
  readonly #min: number;

  constructor(min: number) {
    this.#min = min;
  }

  queue(pipeline: ChainableCommander, ms: number): void {
    pipeline.wait(this.#min, ms);
  }

  async missing([answer]: PipelineAnswers): Promise<Error | undefined> {
    const [error, replicas] = answer ?? [new Error("no answer")];
    if (error) return error;
    if (Number(replicas) >= this.#min) return undefined;
    return new Error(`${replicas} of ${this.#min} replicas acknowledged`);
  }
}
