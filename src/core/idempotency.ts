import { UnderWayByName } from "../collections/under-way.ts";
import { errorOfAbort, GatewayError } from "../errors.ts";
import { invalidFields } from "./validate.ts";

/** A call under way: its answer, and whether its request may have been sent. */
export interface Run<Result> {
  readonly answer: Promise<Result>;
  /** Whether this process has sent the request. */
  readonly sent: () => boolean;
  /** Whether this process or another replica may have sent the request. */
  readonly perhapsSent: () => boolean;
}

/**
 * Calls of this process that are under way, by `Idempotency-Key`: a call with the same key joins
 * the first one. Between replicas, and after the first call, the intent store answers repeats.
 */
export interface SharedRuns {
  /**
   * Joins the call under way for a key, or starts one. Each caller leaves when its own signal
   * aborts; the signal given to `start` aborts when all callers have left.
   * @throws GatewayError ALREADY_EXISTS for a key under which another request is under way.
   */
  join<Result>(
    use: { readonly id: string; readonly fingerprint: string },
    signal: AbortSignal,
    start: (signal: AbortSignal) => Run<Result>,
  ): Run<Result>;
}

export function createSharedRuns(): SharedRuns {
  const shared = new UnderWayByName<SharedRun>();
  return {
    join<Result>(
      { id, fingerprint }: { readonly id: string; readonly fingerprint: string },
      signal: AbortSignal,
      start: (signal: AbortSignal) => Run<Result>,
    ): Run<Result> {
      let joined = shared.get(id);
      if (joined && joined.fingerprint !== fingerprint) throw keyReused();
      if (!joined) {
        const abandon = new AbortController();
        joined = { fingerprint, abandon, callers: 0, run: start(abandon.signal) };
        shared.set(id, joined);
        const begun = joined;
        const over = () => {
          if (shared.get(id) === begun) shared.delete(id);
        };
        joined.run.answer.then(over, over);
      }
      const { run, abandon } = joined;
      const of = joined;
      of.callers++;
      const leave = () => {
        if (--of.callers > 0) return;
        // A later caller starts a new call, unless this one was sent: then it joins this one.
        if (shared.get(id) === of && !run.sent()) shared.delete(id);
        abandon.abort(errorOfAbort(signal));
      };
      signal.addEventListener("abort", leave, { once: true });
      const done = () => signal.removeEventListener("abort", leave);
      run.answer.then(done, done);
      return run as Run<Result>;
    },
  };
}

interface SharedRun {
  readonly fingerprint: string;
  readonly abandon: AbortController;
  readonly run: Run<unknown>;
  callers: number;
}

/**
 * Reads the key of an `Idempotency-Key` header: its plain text, or the text between the quotes of
 * the IETF draft's form, a String of RFC 8941.
 * @throws GatewayError INVALID_ARGUMENT for a header that is neither
 */
export function readKey(header: string): string {
  const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(header)?.[1];
  if (quoted === undefined) {
    if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
  } else {
    const key = quoted.replace(/\\(.)/g, "$1");
    if (key.length >= 1 && key.length <= 255) return key;
  }
  throw invalidFields([
    { path: "idempotency-key", message: "must be 1 to 255 visible ASCII characters" },
  ]);
}

export function keyReused(): GatewayError {
  return new GatewayError("ALREADY_EXISTS", "the Idempotency-Key was used for another request", {
    reason: "IDEMPOTENCY_KEY_REUSED",
  });
}
