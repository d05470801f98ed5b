import type { DescMethod, Message } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { loggedId } from "../secrets/mask-card-numbers.ts";
import { authorize } from "./authorize.ts";
import type { CoreOptions } from "./context.ts";
import { type Call, type Core, type Methods, methods } from "./core.ts";
import { forCustomer, isForCustomer } from "./customer.ts";
import { observedStream } from "./observed-streams.ts";
import { createStreamLimits } from "./stream-limits.ts";
import { validate } from "./validate.ts";

/**
 * Wraps the use cases in the one place where callers and requests are checked: a call's scope is
 * checked before its request is looked at, a request about a customer names the one that its caller
 * may act for, no use case gets a request that breaks the rules in the proto, and streams count
 * against the caller's limit and are observed. Here the edges also hear, for their records, what a
 * call is about.
 */
export function guarded(
  cases: Pick<Core, keyof Methods>,
  options: Pick<CoreOptions, "namesExternalIds" | "maxStreamsPerCaller" | "report" | "tracing">,
): typeof cases {
  const limits = createStreamLimits(options.maxStreamsPerCaller);
  const note = (request: unknown, call: Call) => {
    if (!options.namesExternalIds || !call.onAbout) return;
    const externalId = externalIdOf(request);
    if (externalId) call.onAbout(loggedId(externalId));
  };
  const all = Object.entries(methods) as [keyof Methods, DescMethod][];
  const guards = all.map(([name, method]) => {
    const run = cases[name] as (request: unknown, call: Call) => unknown;
    const check = (request: unknown, call: Call) => {
      note(request, call);
      authorize(call, method, request);
    };
    async function* events(request: unknown, call: Call) {
      check(request, call);
      const release = limits.take(call.caller);
      if (!release) throw tooManyStreams();
      try {
        validate(method.input, request as Message);
        yield* run(request, call) as AsyncIterable<Event>;
      } finally {
        release();
      }
    }
    const stream = (request: unknown, call: Call) =>
      observedStream((ownCall) => events(request, ownCall), call, options);
    const namesCustomer = isForCustomer(method);
    const answer = (given: Message, call: Call) => {
      try {
        check(given, call);
        const request = namesCustomer ? forCustomer(given, call) : given;
        validate(method.input, request);
        return Promise.resolve(run(request, call));
      } catch (error) {
        return Promise.reject(error);
      }
    };
    return [name, method.methodKind === "server_streaming" ? stream : answer];
  });
  return Object.fromEntries(guards);
}

function tooManyStreams(): GatewayError {
  return new GatewayError("RESOURCE_EXHAUSTED", "the caller has too many streams open", {
    reason: "TOO_MANY_STREAMS",
  });
}

function externalIdOf(request: unknown): string | undefined {
  const { externalId, order } = request as {
    readonly externalId?: string;
    readonly order?: { readonly externalId: string };
  };
  return externalId ?? order?.externalId;
}
