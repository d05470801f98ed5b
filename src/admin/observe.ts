import type { CallbackObserver } from "../callbacks/receiver.ts";
import type { ReconcileObserver } from "../reconcile/reconciler.ts";
import type { UpstreamObserver } from "../upstream/upstream.ts";
import type { Recent } from "./recent.ts";

/** What the console remembers, by account. */
export type Recents = ReadonlyMap<string, Recent>;

/** Observers that also tell the console, besides the one that they are given. */
export function upstreamTells(
  recent: Recent | undefined,
  next: UpstreamObserver,
): UpstreamObserver {
  return {
    ...next,
    onCall(call) {
      recent?.call(call);
      next.onCall(call);
    },
    onCredentials(accepted) {
      recent?.credentials(accepted);
      next.onCredentials(accepted);
    },
    onBreaker(change) {
      recent?.breaker(change.calls, change.state);
      next.onBreaker?.(change);
    },
  };
}

export function callbacksTell(recents: Recents, next: CallbackObserver): CallbackObserver {
  return {
    ...next,
    onVerdict(received) {
      const { account, verdict } = received;
      const told = account === undefined ? [...recents.values()] : [recents.get(account)];
      // What goes to no address of ours may have been meant for any of them.
      for (const recent of told) recent?.callback(verdict);
      next.onVerdict(received);
    },
  };
}

export function reconcilerTells(recents: Recents, next: ReconcileObserver): ReconcileObserver {
  return {
    ...next,
    onSettled(settled) {
      recents.get(settled.account)?.settled(settled.by);
      next.onSettled(settled);
    },
    onProbe(probe) {
      recents.get(probe.account)?.probe(probe.rail, probe.outcome);
      next.onProbe(probe);
    },
    onGivenUp(givenUp) {
      recents.get(givenUp.account)?.gaveUp();
      next.onGivenUp(givenUp);
    },
  };
}
