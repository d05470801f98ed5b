import type { Resource } from "../model/kinds.ts";

/** A callback that was not understood, as operators see it: on the console and the command line. */
export interface DeadLetterView {
  readonly account: string;
  readonly id: string;
  readonly resource: Resource;
  readonly reason: string;
  /** RFC 3339. */
  readonly receivedAt: string;
  /** Length of the body; absent when the letter is locked. */
  readonly bytes?: number;
  /** The body was sealed with a password that is no longer accepted. */
  readonly locked?: true;
}

/** A single dead letter. */
export interface DeadLetterDetails extends DeadLetterView {
  /** The body with secrets and card numbers masked; absent when it is not UTF-8 text, or locked. */
  readonly text?: string | undefined;
  /** The body as it was received, in base64: it may hold card data. Absent with `?raw=false`. */
  readonly body?: string | undefined;
}

/** `GET /dead-letters`. */
export interface DeadLetterPage {
  readonly dead_letters: readonly DeadLetterView[];
  /** Number of dead letters of the account. */
  readonly total: number;
  /** The `cursor` of the next page; absent on the last page. */
  readonly next_cursor?: string | undefined;
}
