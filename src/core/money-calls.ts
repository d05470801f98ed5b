import { createHmac, randomBytes } from "node:crypto";
import { type DescMessage, type Message, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { errorOfAbort, GatewayError } from "../errors.ts";
import type { SendOptions } from "../upstream/upstream.ts";
import type { Call } from "./core.ts";
import { checkKey, type IdempotencyStore, type Run } from "./idempotency.ts";

/** One call that moves money. */
export interface MoneyCall<Desc extends DescMessage, Answer> {
  readonly call: Call;
  readonly method: string;
  readonly externalId: string;
  readonly schema: Desc;
  /** As the caller gave it, checked. */
  readonly request: MessageShape<Desc>;
  readonly send: (options: SendOptions) => Promise<Answer>;
  /** Learns from the answer, whether or not the caller is still there. */
  readonly learn: (answer: Answer) => Promise<void>;
}

/**
 * Calls that move money and are under way. Once sent, such a call is never cut off: when its caller
 * goes away it goes on to the upstream time-out, and what it answers is still learned from.
 */
export interface MoneyCalls {
  /**
   * @throws GatewayError DEADLINE_EXCEEDED with `outcomeUnknown` when the caller's deadline passes
   * or the caller goes away after the call was sent.
   */
  run<Desc extends DescMessage, Answer>(moneyCall: MoneyCall<Desc, Answer>): Promise<Answer>;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

export function createMoneyCalls(idempotency: IdempotencyStore): MoneyCalls {
  const underWay = new Set<Promise<unknown>>();
  const fingerprint = createFingerprint();

  function start<Desc extends DescMessage, Answer>({
    call,
    send,
    learn,
  }: MoneyCall<Desc, Answer>): Run<Answer> {
    let sent = false;
    const onSent = () => {
      sent = true;
    };
    const answer = (async () => {
      const result = await send({ ...sendOptions(call), onSent });
      await learn(result);
      return result;
    })();
    underWay.add(answer);
    const forget = () => underWay.delete(answer);
    answer.then(forget, forget);
    return { answer, sent: () => sent };
  }

  return {
    async run(moneyCall) {
      const { call, method, schema, request, externalId } = moneyCall;
      if (call.idempotencyKey === undefined) {
        return unlessAbandoned(start(moneyCall), call.signal, externalId);
      }
      checkKey(call.idempotencyKey);
      const use = {
        account: call.caller.account,
        method,
        key: call.idempotencyKey,
        fingerprint: fingerprint(schema, request),
      };
      for (;;) {
        const run = idempotency.once(use, () => start(moneyCall));
        try {
          return await unlessAbandoned(run, call.signal, externalId);
        } catch (error) {
          // Another caller's run that ended with that caller, before anything was sent, is no
          // answer to this one.
          if (call.signal.aborted || run.sent() || !isGone(error)) throw error;
        }
      }
    },

    async idle() {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

/** How long and for whom an upstream call may take. */
export function sendOptions(call: Call): SendOptions {
  if (call.signal.aborted) throw errorOfAbort(call.signal);
  return call.deadlineMs === undefined
    ? { signal: call.signal }
    : { signal: call.signal, deadlineMs: call.deadlineMs };
}

/** A keyed hash with a key of this process: nothing of a card number can be told from it. */
function createFingerprint(): (schema: DescMessage, request: Message) => string {
  const key = randomBytes(32);
  return (schema, request) =>
    createHmac("sha256", key).update(toBinary(schema, request)).digest("base64url");
}

function isGone(error: unknown): boolean {
  return (
    error instanceof GatewayError &&
    (error.code === "CANCELLED" || error.code === "DEADLINE_EXCEEDED")
  );
}

function unlessAbandoned<Answer>(
  { answer, sent }: Run<Answer>,
  signal: AbortSignal,
  externalId: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(sent() ? outcomeUnknown(externalId) : errorOfAbort(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    const done = () => signal.removeEventListener("abort", onAbort);
    answer.then(resolve, reject).finally(done);
  });
}

function outcomeUnknown(externalId: string): GatewayError {
  return new GatewayError(
    "DEADLINE_EXCEEDED",
    "the call was sent and its outcome is not known yet: look it up before you try again",
    { reason: "OUTCOME_UNKNOWN", outcomeUnknown: { externalId } },
  );
}
