import { randomUUID } from "node:crypto";
import type { Secret } from "../../src/secrets/secret.ts";
import type { SandboxClock } from "../clock.ts";
import type { CallbackRetry, SandboxRecord } from "../options.ts";
import type { Journal } from "./journal.ts";
import { postCallback } from "./post-callback.ts";
import type { SavedState } from "./saved-state.ts";
import type { Scenario } from "./scenarios.ts";
import type { Schedule } from "./schedule.ts";

/** What a callback is about, and where it goes. */
export interface Addressee {
  /** payment_id or transaction_id: the callbacks of one subject arrive in the order of sending. */
  readonly subject: string;
  readonly externalId: string;
  /** Without it there are no callbacks. */
  readonly url: string | undefined;
}

/** A callback that is not delivered yet, as it is saved. */
interface QueuedCallback extends Addressee {
  readonly url: string;
  readonly body: string;
  /** How long to wait before the first attempt, in milliseconds. */
  readonly delayMs: number;
  readonly id: string;
  /** Attempts so far. */
  attempts: number;
  /** Set by the first attempt. */
  giveUpAtMs?: number;
}

export type Callbacks = ReturnType<typeof createCallbacks>;

export interface CallbacksOptions {
  readonly password: Secret;
  readonly retry: CallbackRetry;
  /** Between the end of an operation and its callback, in milliseconds. */
  readonly delayMs: number;
  readonly schedule: Schedule;
  readonly clock: SandboxClock;
  readonly journal: Journal;
  /** Most undelivered callbacks to keep; further ones are dropped. */
  readonly maxWaiting: number;
  readonly saved: SavedState;
  readonly log: (record: SandboxRecord) => void;
}

/**
 * Sends signed callbacks (spec, Events part): POST, repeated with doubling pauses until the answer
 * is 200 OK. The spec does not show schedule and time-out, so they are options.
 */
export function createCallbacks(options: CallbacksOptions) {
  const { schedule, clock, journal, retry, saved, log } = options;
  const lanes = new Map<string, Lane>();
  let waiting = 0;

  async function drain(subject: string, lane: Lane): Promise<void> {
    for (let callback = lane.queue[0]; callback; callback = lane.queue[0]) {
      await deliver(callback, lane);
      lane.queue.shift();
      saved.remove("callback", callback.id);
      waiting -= 1;
    }
    lanes.delete(subject);
  }

  async function deliver(callback: QueuedCallback, lane: Lane): Promise<void> {
    const { subject, externalId, url, body, delayMs } = callback;
    await pause(delayMs, lane);
    const bytes = Buffer.from(body);
    callback.giveUpAtMs ??= clock.now() + retry.giveUpAfterMs;
    for (;;) {
      const attempt = ++callback.attempts;
      const outcome = String(await post(url, bytes));
      journal.add({ type: "callback", subject, externalId, url, body, attempt, outcome });
      log({ event: "callback", subject, attempt, outcome });
      if (outcome === "200") return;
      const pauseMs = pauseAfter(attempt, retry);
      if (clock.now() + pauseMs > callback.giveUpAtMs)
        return log({ event: "callback_given_up", subject });
      saved.put("callback", callback.id, callback);
      await pause(pauseMs, lane);
    }
  }

  async function pause(ms: number, lane: Lane): Promise<void> {
    await schedule.sleep(ms, lane.wake.signal);
    if (lane.wake.signal.aborted) lane.wake = new AbortController();
  }

  /** The response's status, or an error code. */
  async function post(url: string, body: Buffer): Promise<number | string> {
    const limit = AbortSignal.timeout(retry.attemptTimeoutMs);
    try {
      const signal = AbortSignal.any([schedule.closing, limit]);
      return await postCallback(url, body, options.password, signal);
    } catch (error) {
      const { name, cause } = error as Error;
      return (cause as NodeJS.ErrnoException | undefined)?.code ?? name;
    }
  }

  function queue(callback: QueuedCallback): void {
    const { subject } = callback;
    waiting += 1;
    const lane = lanes.get(subject);
    if (lane) {
      lane.queue.push(callback);
      return;
    }
    const fresh: Lane = { queue: [callback], wake: new AbortController() };
    lanes.set(subject, fresh);
    schedule.run(() => drain(subject, fresh));
  }

  // What waited for its next attempt when the process ended does not wait any longer.
  for (const callback of saved.all<QueuedCallback>("callback")) queue({ ...callback, delayMs: 0 });

  function send({ subject, externalId, url }: Addressee, body: string, delayMs: number): void {
    if (url === undefined) return;
    if (waiting >= options.maxWaiting) {
      log({ event: "callback_dropped", subject });
      return;
    }
    const queued = { subject, externalId, url, body, delayMs, id: randomUUID(), attempts: 0 };
    saved.put("callback", queued.id, queued);
    queue(queued);
  }

  return {
    /** Delivers in the background what a scenario plans, each after the usual delay. */
    announce(to: Addressee, plan: Scenario["callbacks"], bodies: Bodies): void {
      for (const which of plans[plan]) send(to, bodies[which](), options.delayMs);
    },
    /** Delivers a body in the background without a delay, and ends the subject's current pause. */
    resend(to: Addressee, body: string): void {
      send(to, body, 0);
      lanes.get(to.subject)?.wake.abort();
    },
  };
}

/** The body of an operation's current state, and the one that it had while it was pending. */
interface Bodies {
  current(): string;
  pending(): string;
}

/** The bodies that are sent, in this order. */
const plans: Record<Scenario["callbacks"], readonly (keyof Bodies)[]> = {
  once: ["current"],
  "three times": ["current", "current", "current"],
  reordered: ["current", "pending"],
  never: [],
};

/** How long to wait after the attempt of this number (from 1), in milliseconds. */
export function pauseAfter(attempt: number, retry: CallbackRetry): number {
  return Math.min(retry.firstPauseMs * 2 ** (attempt - 1), retry.maxPauseMs);
}

interface Lane {
  readonly queue: QueuedCallback[];
  /** Aborted to end a pause; replaced after the pause. */
  wake: AbortController;
}
