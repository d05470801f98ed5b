import type { CallbackObserver } from "../callbacks/receiver.ts";
import type { BucketObserver } from "../ratelimit/observed-bucket.ts";
import type { ReconcileObserver } from "../reconcile/reconciler.ts";
import type { UpstreamObserver } from "../upstream/upstream.ts";
import type { ActivityWindow } from "./activity-window.ts";

/** The activity that the console shows, by account. */
export type ActivityWindows = ReadonlyMap<string, ActivityWindow>;

/** The observers below record what they receive for the console, and pass it on to `next`. */
export function observeUpstream(
  activity: ActivityWindow | undefined,
  next: UpstreamObserver,
): UpstreamObserver {
  return {
    ...next,
    onCall(call) {
      activity?.call(call);
      next.onCall(call);
    },
    onCredentials(accepted) {
      activity?.credentials(accepted);
      next.onCredentials(accepted);
    },
    onBreaker(change) {
      activity?.breaker(change.calls, change.state);
      next.onBreaker?.(change);
    },
  };
}

export function observeBucket(
  activity: ActivityWindow | undefined,
  next: BucketObserver,
): BucketObserver {
  return {
    ...next,
    onWait(call) {
      const ended = next.onWait(call);
      return (end) => {
        // Without a caller it is the gateway's own look-up, which takes only spare tokens.
        if (call.caller) activity?.waited({ caller: call.caller.name, ...end });
        ended(end);
      };
    },
  };
}

export function observeCallbacks(
  activityWindows: ActivityWindows,
  next: CallbackObserver,
): CallbackObserver {
  return {
    ...next,
    onVerdict(received) {
      const { account, verdict } = received;
      const affected =
        account === undefined ? [...activityWindows.values()] : [activityWindows.get(account)];
      // The path names no account of ours, so the callback may have been meant for any of them.
      for (const activity of affected) activity?.callback(verdict);
      next.onVerdict(received);
    },
  };
}

export function observeReconciler(
  activityWindows: ActivityWindows,
  next: ReconcileObserver,
): ReconcileObserver {
  return {
    ...next,
    onProbe(probe) {
      activityWindows.get(probe.account)?.probe(probe.lookupMethod, probe.outcome);
      next.onProbe(probe);
    },
    onGivenUp(givenUp) {
      activityWindows.get(givenUp.account)?.gaveUp();
      next.onGivenUp(givenUp);
    },
  };
}
