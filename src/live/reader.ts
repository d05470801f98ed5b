import type { Writable } from "node:stream";

/** How long a client may take to read the rest of a stream that has failed, in milliseconds. */
const failedStreamMs = 5_000;

/** Cuts a failed stream whose client does not read on to receive the error. */
export function cutUnlessRead(isUnread: () => boolean, cut: () => void): void {
  setTimeout(() => {
    if (isUnread()) cut();
  }, failedStreamMs).unref();
}

/** Resolves when everything written has left this process, or the connection is closed. */
export async function drained(outlet: Pick<Writable, "closed" | "off" | "once">): Promise<void> {
  if (outlet.closed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      outlet.off("drain", done).off("close", done);
      resolve();
    };
    outlet.once("drain", done).once("close", done);
  });
}
