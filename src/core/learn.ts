import type { Entry } from "../events/log.ts";
import type { CoreOptions } from "./context.ts";

/**
 * Makes an event of an upstream answer. The caller gets its answer even when the log cannot be
 * written: the money has moved. @returns whether all that it told is in the log now
 */
export async function learn(
  { log, observer }: Pick<CoreOptions, "log" | "observer">,
  account: string,
  externalId: string,
  entry: Entry | undefined,
): Promise<boolean> {
  if (!entry) return true;
  try {
    const { conflict } = await log.append(account, entry);
    if (conflict) observer.onConflict({ account, externalId });
    return true;
  } catch (error) {
    observer.onUnrecorded({ account, externalId, error });
    return false;
  }
}
