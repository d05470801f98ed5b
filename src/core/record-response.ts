import type { Appended, Entry } from "../events/log.ts";
import type { CoreOptions } from "./context.ts";

/**
 * Makes an event of an upstream answer. The caller gets its answer even when the log cannot be
 * written: the money has moved.
 * @returns what became of it in the log; undefined when it could not be written
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
