import { UnderWayByName } from "../collections/under-way.ts";
import { errorOfAbort, GatewayError } from "../errors.ts";
import type { Call } from "./core.ts";
import { invalidFields } from "./validate.ts";

/** A call under way: its answer, and whether its request may have been sent. */
export interface Run<Result> {
  readonly answer: Promise<Result>;
  /** Whether this process has sent the request. */
  readonly sent: () => boolean;
  /** Whether this process or another replica may have sent the request. */
  readonly perhapsSent: () => boolean;
  /** Whether later calls with the key get the outcome too. */
  readonly stored: () => boolean;
  /** Whether the outcome is that of an earlier call with the key. */
  readonly replayed: () => boolean;
}

/**
 * Calls of this process that are under way, by `Idempotency-Key`: a call with the same key joins
 * the first one. Between replicas, and after the first call, the intent store answers repeats.
 */
export function createSharedRuns() {
  const shared = new UnderWayByName<SharedRun>();
  return {
    /**
     * Joins the call under way for a key, or starts one. Each caller leaves when its own signal
     * aborts; the signal given to `start` aborts when all callers have left.
     * @throws GatewayError ALREADY_EXISTS for a key under which another request is under way.
     */
    join<Result>(
      { id, fingerprint }: { readonly id: string; readonly fingerprint: string },
      signal: AbortSignal,
      start: (signal: AbortSignal) => Run<Result>,
    ): Run<Result> {
      let joined = shared.get(id);
      const isFirst = joined === undefined;
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
      return { ...(run as Run<Result>), replayed: isFirst ? run.replayed : run.stored };
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
 * The key of a call, from its header or its input. Undefined for a call without one.
 * @throws GatewayError INVALID_ARGUMENT for a text that is not a key, and for two different keys
 */
export function keyOf(
  call: Pick<Call, "idempotencyKey" | "inputIdempotencyKey">,
): string | undefined {
  const ofHeader = readKey(call.idempotencyKey, headerName);
  const ofInput = readKey(call.inputIdempotencyKey, inputName);
  if (ofHeader !== undefined && ofInput !== undefined && ofHeader !== ofInput) {
    const message = "is not the key of the Idempotency-Key header";
    throw invalidFields([{ path: inputName, message }]);
  }
  return ofInput ?? ofHeader;
}

const headerName = "idempotency-key";
/** Only GraphQL has it, so it has no spelling of the proto. */
const inputName = "idempotencyKey";

/**
 * Reads a key: its plain text, or the text between the quotes of the IETF draft's form, a String of
 * RFC 8941.
 */
function readKey(given: string | undefined, path: string): string | undefined {
  if (given === undefined) return undefined;
  const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(given)?.[1];
  if (quoted === undefined) {
    if (/^[\x21-\x7e]{1,255}$/.test(given)) return given;
  } else {
    const key = quoted.replace(/\\(.)/g, "$1");
    if (key.length >= 1 && key.length <= 255) return key;
  }
  throw invalidFields([{ path, message: "must be 1 to 255 visible ASCII characters" }]);
}

export function keyReused(): GatewayError {
  return new GatewayError("ALREADY_EXISTS", "the Idempotency-Key was used for another request", {
    reason: "IDEMPOTENCY_KEY_REUSED",
  });
}
