import type { PayoutEnds } from "../model/payout-statuses.ts";
import { calls } from "./calls.ts";
import { type ClientOptions, createClient } from "./client.ts";
import type { RestCall } from "./rest-call.ts";
import type { SendOptions, Upstream } from "./upstream.ts";

export interface UpstreamOptions extends ClientOptions {
  /** The service's final payout statuses. Default: success and failure. */
  readonly payoutEnds?: PayoutEnds;
}

/** Creates the client of the payments service for one account. It does not close the bucket. */
export function createUpstream({ payoutEnds, ...options }: UpstreamOptions): Upstream {
  const client = createClient(options);
  const sends = Object.entries(calls).map(([name, callOf]) => {
    async function send(request: never, sending: SendOptions): Promise<unknown> {
      const call = callOf(request, payoutEnds) as RestCall<unknown>;
      return call.endpoint.method === "GET"
        ? client.read(call, sending)
        : client.send(call, sending);
    }
    return [name, send];
  });
  return { ...Object.fromEntries(sends), close: client.close };
}
