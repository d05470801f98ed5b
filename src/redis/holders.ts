import type { ChainableCommander } from "ioredis";
import type { ServerAddress } from "./sentinels.ts";

/** Finds out whether enough servers hold what a connection wrote. */
export interface Holders {
  /** Adds the questions to the pipeline behind the writes; replicas have so long to answer. */
  queue(pipeline: ChainableCommander, ms: number): void;
  /** Why what was written does not count, by the answers; undefined if it does. */
  missing(answers: PipelineAnswers, asked: Question): Promise<Error | undefined>;
}

export type PipelineAnswers = readonly (readonly [error: Error | null, answer: unknown])[];

export interface Question {
  /** The server that was asked, by its Sentinels' name for it. */
  readonly primary: ServerAddress | undefined;
  /** Asks once more, on the same connection. */
  again(ms: number): Promise<PipelineAnswers>;
}

/** So many replicas, whichever: a failover to another one loses what they hold. */
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
