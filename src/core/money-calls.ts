import { hash, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type DescMessage, type Message, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { SharedCalls } from "../collections/shared-calls.ts";
import { UnderWay } from "../collections/under-way.ts";
import { errorOfAbort, GatewayError, ofAccount, unlessAborted } from "../errors.ts";
import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { markOf, markOfRefusal } from "../ledger/evidence.ts";
import type { Begun, Ending, Intent, NewIntent } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Appended, Entry } from "../ledger/log.ts";
import { type MoneyMethod, moneyMethods } from "../model/money-methods.ts";
import type { Keyring } from "../secrets/keyring.ts";
import { activeTrace } from "../telemetry/tracing/tracing.ts";
import { saysAlreadyPaid } from "../upstream/error-codes.ts";
import { outcomeUnknown } from "../upstream/outcome.ts";
import type { SendOptions } from "../upstream/upstream.ts";
import type { Call } from "./core.ts";
import { keyOf, keyReused, openOutcome, sealOutcome } from "./idempotency.ts";

/** One call that moves money. */
export interface MoneyCall<Result extends DescMessage> {
  readonly call: Call;
  readonly method: MoneyMethod;
  readonly externalId: string;
  /** The caller's request, already validated. */
  readonly request: Message;
  readonly answerSchema: Result;
  readonly send: (options: SendOptions) => Promise<MessageShape<Result>>;
  /** The call is about to make a payment with `confirm: false`. */
  readonly hold?: boolean;
  /** The event log entry of a refusal, if it is to be one. */
  readonly refusal?: (said: UpstreamError, intent: Intent) => Promise<Entry | undefined>;
  /**
   * The event log entry of an answer; undefined if it leaves open what became of the call. `goesOn`: it
   * has none, and has the caller go on with the payment, which is looked up then, and bars no further
   * attempt.
   */
  readonly entry: (answer: MessageShape<Result>, intent: Intent) => Entry | "goesOn" | undefined;
}

/** The service's answer to a call, and what became of its event. */
export interface Made<Result> {
  readonly answer: Result;
  /** Absent if the answer is that of an earlier call, or names no payment yet. */
  readonly entry?: Entry;
  /** Absent if the event log could not be written. */
  readonly appended?: Appended | undefined;
}

export interface MoneyCallsOptions {
  readonly ledger: Ledger;
  /** Keyrings by account name. */
  readonly keyrings: ReadonlyMap<string, Keyring>;
  /** `maxWaitMs`: longest wait for a token. `timeoutMs`: longest time of a call once it is sent. */
  readonly timeouts: { readonly maxWaitMs: number; readonly timeoutMs: number };
}

/**
 * Runs calls that move money. Each is recorded as an intent before it is sent. Once sent, a call is
 * never cut off: when its caller goes away, it continues up to the upstream time-out, and its
 * answer is still recorded.
 */
export function createMoneyCalls({ ledger, keyrings, timeouts }: MoneyCallsOptions) {
  const keyringOf = (account: string) => ofAccount(keyrings, account);
  /** A call that is not sent within this time is not sent at all. */
  const sendWithinMs = timeouts.maxWaitMs + graceMs;
  const leaseMs = sendWithinMs + timeouts.timeoutMs + graceMs;
  const underWay = new UnderWay<Promise<unknown>>();
  /**
   * By `Idempotency-Key`. Between replicas, and after the first call, the intent store answers
   * repeats.
   */
  const shared = new SharedCalls<KeyedRun>();

  function start<Result extends DescMessage>(
    moneyCall: MoneyCall<Result>,
    sending: SendOptions,
    intent: NewIntent,
  ): Run<Made<MessageShape<Result>>> {
    const run: Progress = { sent: false, elsewhere: false, stored: false, replayed: false };
    const answer = attempt(moneyCall, sending, intent, run);
    const member = underWay.add(answer);
    const forget = () => member.leave();
    answer.then(forget, forget);
    return { answer, progress: run };
  }

  async function attempt<Result extends DescMessage>(
    { call, answerSchema, externalId, send, entry, refusal }: MoneyCall<Result>,
    sending: SendOptions,
    given: NewIntent,
    run: Progress,
  ): Promise<Made<MessageShape<Result>>> {
    const { account } = call.caller;
    const { begun, elapsedMs } = await begin(account, given, sending.signal, run);
    if (begun.kind === "keyAnswered") {
      const { answers } = keyringOf(account);
      const { digest = "" } = given.key ?? {};
      const outcome = openOutcome(answers, answerSchema, begun.answer, digest);
      if (!outcome) throw lostOutcome(externalId);
      run.stored = true;
      run.replayed = true;
      if ("error" in outcome) throw outcome.error;
      return outcome;
    }
    const { intent } = begun;
    const sealed = (outcome: Parameters<typeof sealOutcome<Result>>[2]) => {
      if (!given.key) return Buffer.alloc(0);
      run.stored = true;
      return sealOutcome(keyringOf(account).answers, answerSchema, outcome, given.key.digest);
    };

    const onSent = () => {
      // This process may have been suspended, and another replica may have concluded by now that
      // the call never arrived.
      if (elapsedMs() > sendWithinMs) throw new Error("too late to be sent");
      run.sent = true;
    };
    let result: MessageShape<Result>;
    try {
      result = await send({ ...sending, onSent });
    } catch (error) {
      if (!run.sent) {
        await ledger.end(account, intent, notAttempted);
        throw error;
      }
      if (!(error instanceof GatewayError) || error.details.outcomeUnknown) {
        await ledger.end(account, intent, { state: "unknown" });
        throw error instanceof GatewayError ? error : outcomeUnknown(externalId, { cause: error });
      }
      if (error.details.notAttempted) {
        await ledger.end(account, intent, notAttempted);
        throw error;
      }
      // The service's definite refusal: the call did not happen.
      const { upstream } = error.details;
      const paid = upstream && saysAlreadyPaid(upstream) ? upstream : undefined;
      const mark = markOfRefusal(intent.method, upstream?.paymentId);
      const told = upstream && (await refusal?.(upstream, intent));
      const key = sealed({ error });
      await ledger.end(account, intent, { state: "closed", mark, key, paid }, told);
      throw error;
    }
    const newEntry = entry(result, intent);
    if (!newEntry) {
      await ledger.end(account, intent, { state: "unknown" });
      throw outcomeUnknown(externalId);
    }
    const key = sealed({ answer: result });
    if (newEntry === "goesOn") {
      await ledger.end(account, intent, { state: "pending", subjectId: "", key });
      return { answer: result };
    }
    const { subjectId, rank } = newEntry;
    const mark = markOf(intent.method, newEntry);
    const ending: Ending =
      rank < 2 ? { state: "pending", subjectId, mark, key } : { state: "closed", mark, key };
    const appended = await ledger.end(account, intent, ending, newEntry);
    return { answer: result, entry: newEntry, appended };
  }

  /**
   * Begins a call. While the first call of its key is running, here or on another replica, it waits
   * for that call's outcome.
   */
  async function begin(
    account: string,
    intent: NewIntent,
    signal: AbortSignal,
    run: Progress,
  ): Promise<{ begun: Extract<Begun, { kind: "started" | "keyAnswered" }>; elapsedMs: Stopwatch }> {
    const { externalId } = intent;
    for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 1.6, maxPauseMs)) {
      if (signal.aborted) throw errorOfAbort(signal);
      // Start the lease clock before the round trip.
      const elapsedMs = startStopwatch();
      const begun = await ledger.begin(account, intent).catch((cause: unknown) => {
        // If the store last reported that the key's first call is running, it may have been sent.
        throw run.elsewhere ? lostOutcome(externalId, { cause }) : cause;
      });
      run.elsewhere = begun.kind === "keyRunning";
      switch (begun.kind) {
        case "started":
        case "keyAnswered":
          return { begun, elapsedMs };
        case "keyReused":
          throw keyReused();
        case "keyUnknown":
          throw lostOutcome(externalId);
        case "inFlight": {
          // A second call while the first has no answer could move the money twice.
          const message = `another call of this method for ${JSON.stringify(externalId)} has no answer yet`;
          throw new GatewayError("ABORTED", message, { reason: "CALL_IN_FLIGHT" });
        }
        case "keyRunning":
          await delay(pauseMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {});
      }
    }
  }

  return {
    /**
     * @throws GatewayError
     * - DEADLINE_EXCEEDED with `outcomeUnknown` when the caller's deadline passes or the caller goes
     *   away after the call was sent; UNKNOWN with `outcomeUnknown` when the gateway shuts down then;
     * - ABORTED while another call of the method has no understood answer yet;
     * - ALREADY_EXISTS for a key that was used for another request;
     * - UNAVAILABLE for a call with a key while the intent store is out of reach; UNKNOWN with
     *   `outcomeUnknown` if the store had reported before that the key's first call is under way.
     */
    async run<Result extends DescMessage>(
      moneyCall: MoneyCall<Result>,
    ): Promise<Made<MessageShape<Result>>> {
      const { call, method, externalId, hold = false } = moneyCall;
      const { kind, method: desc } = moneyMethods[method];
      const trace = activeTrace();
      const about = { method, kind, externalId, leaseMs, ...(hold && { hold }), trace };
      const intent: NewIntent = { id: randomUUID(), ...about };
      const key = keyOf(call);
      if (key === undefined) {
        const run = start(moneyCall, sendOptions(call), intent);
        return unlessAbandoned(run, call.signal, externalId);
      }
      if (call.signal.aborted) throw errorOfAbort(call.signal);
      const { account } = call.caller;
      const id = JSON.stringify([account, method, key]);
      const digest = hash("sha256", JSON.stringify([account, key]), "base64url");
      const request = toBinary<DescMessage>(desc.input, moneyCall.request);
      const fingerprints = keyringOf(account).fingerprints(request);
      const [fingerprint = ""] = fingerprints;
      const joined = shared.get(id);
      if (joined && joined.fingerprint !== fingerprint) throw keyReused();
      const begin = (signal: AbortSignal): KeyedRun => {
        const keyed = { ...intent, key: { digest, fingerprints } };
        return { ...start(moneyCall, { signal, caller: call.caller }, keyed), fingerprint };
      };
      // A later caller starts a new call when all have left, but joins one that was sent.
      const run = shared.join(id, call.signal, begin, ({ progress }) => progress.sent);
      try {
        const own = run as Run<Made<MessageShape<Result>>>;
        return await unlessAbandoned(own, call.signal, externalId);
      } finally {
        const { stored, replayed } = run.progress;
        if (joined ? stored : replayed) call.onReplayed?.();
      }
    },

    /** Resolves when no call is under way. */
    async idle(): Promise<void> {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

/** A call under way. */
interface Run<Result> {
  readonly answer: Promise<Result>;
  readonly progress: Readonly<Progress>;
}

interface KeyedRun extends Run<Made<unknown>> {
  readonly fingerprint: string;
}

/** What is known of a call under way. */
interface Progress {
  /** This process has sent the request. */
  sent: boolean;
  /** The first call of the key is under way at another replica, which may have sent it. */
  elsewhere: boolean;
  /** Later calls with the key get the outcome too. */
  stored: boolean;
  /** The outcome is that of an earlier call with the key. */
  replayed: boolean;
}

/** Slack for what should take no time: scheduling, the store's answers. */
const graceMs = 2_000;

/** Longest pause between two checks whether another replica has the answer. */
const maxPauseMs = 250;

/** Milliseconds since its start. */
type Stopwatch = () => number;

/** Uses the clock that advanced more: a process, or a whole machine, may have been suspended. */
function startStopwatch(): Stopwatch {
  const [wallMs, ownMs] = [Date.now(), performance.now()];
  return () => Math.max(Date.now() - wallMs, performance.now() - ownMs);
}

/**
 * The signal, deadline and caller for a call to the service.
 * @throws GatewayError if the call's signal has aborted
 */
export function sendOptions(call: Call): SendOptions {
  if (call.signal.aborted) throw errorOfAbort(call.signal);
  const { signal, deadlineMs, caller } = call;
  return { signal, deadlineMs, caller };
}

/**
 * The end of a call that never left this process, or of which the service attempted nothing. Its key
 * is free.
 */
const notAttempted: Ending = { state: "closed", key: "free" };

function unlessAbandoned<Result>(
  { answer, progress }: Run<Result>,
  signal: AbortSignal,
  externalId: string,
): Promise<Result> {
  const errorOf = () => {
    const error = errorOfAbort(signal);
    const perhapsSent = progress.sent || progress.elsewhere;
    return perhapsSent ? notKnownYet(externalId, error) : error;
  };
  return unlessAborted(answer, signal, errorOf);
}

/**
 * For a caller that is not waited for any longer, of a call that was sent.
 * @param cause UNAVAILABLE if the gateway ended the wait, any other code if the caller did
 */
export function notKnownYet(externalId: string, cause: GatewayError): GatewayError {
  return outcomeUnknown(
    externalId,
    {},
    "the call was sent and its outcome is not known yet: look it up before you try again",
    cause.code === "UNAVAILABLE" ? "UNKNOWN" : "DEADLINE_EXCEEDED",
  );
}

/** For a repeat of a key: the outcome of its first call is unknown, or cannot be read. */
function lostOutcome(externalId: string, details: { cause?: unknown } = {}): GatewayError {
  const message = "the call of this Idempotency-Key was sent and its answer was lost: look it up";
  return outcomeUnknown(externalId, details, message);
}
