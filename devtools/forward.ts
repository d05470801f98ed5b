import { setTimeout as delay } from "node:timers/promises";
import { postCallback } from "@payments-gateway/sandbox/post-callback";
import { fetchFault } from "../src/cli/reach.ts";
import { type Event, EventSource } from "../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema } from "../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../src/gen/payments/v1/payout_pb.ts";
import { kindOf, kinds } from "../src/model/kinds.ts";
import type { Secret } from "../src/secrets/secret.ts";
import { encode } from "../src/wire/wire.ts";

export interface ForwardOptions {
  /** `{kind}` in it becomes `payments` or `payouts`. */
  readonly url: string;
  readonly password: Secret;
  /** Most attempts for one callback. */
  readonly attempts: number;
  readonly signal: AbortSignal;
}

/** Time limit of one attempt. */
const attemptMs = 10_000;
/** The pause after attempt n is random, up to this times 2^n. */
const firstPauseMs = 500;

/** The result of the last attempt at the local service. */
export interface Forwarded {
  readonly url: string;
  /** HTTP status, or the system's error code. */
  readonly answer: number | string;
  readonly accepted: boolean;
  readonly attempts: number;
  readonly durationMs: number;
}

/**
 * Sends an event's callback to a local service, as the payments service would (spec, Authentication
 * part 4 and Events): signed, with the same fields in a newly written body. Only 200 accepts it;
 * after any other answer, a redirect included, it is sent again. Returns undefined for an event
 * that did not come from a callback. Rejects only when the signal aborts.
 */
export async function forward(
  event: Event,
  options: ForwardOptions,
): Promise<Forwarded | undefined> {
  const body = event.source === EventSource.CALLBACK ? bodyOf(event) : undefined;
  if (body === undefined) return undefined;
  const { resource } = kinds[kindOf(event.kind)];
  const url = options.url.replaceAll("{kind}", resource);
  const { signal } = options;
  const startedAt = performance.now();
  for (let attempts = 1; ; attempts++) {
    const answer = await post(url, body, options);
    const accepted = answer === 200;
    if (accepted || attempts >= options.attempts) {
      const durationMs = Math.round(performance.now() - startedAt);
      return { url, answer, accepted, attempts, durationMs };
    }
    await delay(Math.random() * firstPauseMs * 2 ** attempts, undefined, { signal });
  }
}

/** Undefined for an event without a resource to write it from. */
function bodyOf({ resource }: Event): Buffer | undefined {
  if (resource.case === "payment") {
    const body: Members = JSON.parse(encode(PaymentSchema, resource.value));
    for (const { field, value } of resource.value.unrecognized) put(body, field.split("."), value);
    return Buffer.from(JSON.stringify(body));
  }
  if (resource.case === "payout") return Buffer.from(encode(PayoutSchema, resource.value));
  return undefined;
}

type Members = { [name: string]: Members | string };

/** Puts back a word that the gateway does not know, at its path, such as `details.status`. */
function put(body: Members, path: readonly string[], word: string): void {
  const [name = "", ...rest] = path;
  if (rest.length === 0) body[name] = word;
  else {
    body[name] ??= {};
    put(body[name] as Members, rest, word);
  }
}

async function post(
  url: string,
  body: Buffer,
  { password, signal }: ForwardOptions,
): Promise<number | string> {
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(attemptMs)]);
    return await postCallback(url, body, password, limited);
  } catch (error) {
    signal.throwIfAborted();
    return fetchFault(error);
  }
}
