import type { Appended, Entry } from "../ledger/log.ts";
import type { CoreOptions } from "./context.ts";

/**
 * Appends an answer of the service to the event log. It never throws: the caller gets its answer
 * even when the log cannot be written, since the money has moved.
 * @returns the result of the append; undefined when the log could not be written
 */
export async function recordResponse(
  { log, observer }: Pick<CoreOptions, "log" | "observer">,
  account: string,
  externalId: string,
  entry: Entry,
): Promise<Appended | undefined> {
  try {
    const appended = await log.append(account, entry);
    if (appended.conflict) observer.onConflict({ account, externalId });
    return appended;
  } catch (error) {
    observer.onUnrecorded({ account, externalId, error });
    return undefined;
  }
}
