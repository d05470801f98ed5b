import type { Entry } from "../events/log.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { CoreOptions } from "./context.ts";

/**
 * Makes an event of an upstream answer. The caller gets its answer even when the log cannot be
 * written: the money has moved, and the callback will tell the same.
 * @returns the event that was made; none when it told nothing new, or could not be written
 */
export async function learn(
  { log, observer }: Pick<CoreOptions, "log" | "observer">,
  account: string,
  externalId: string,
  entry: Entry | undefined,
): Promise<Event | undefined> {
  if (!entry) return undefined;
  try {
    const { conflict, event } = await log.append(account, entry);
    if (conflict) observer.onConflict({ account, externalId });
    return event;
  } catch (error) {
    observer.onUnrecorded({ account, externalId, error });
    return undefined;
  }
}
