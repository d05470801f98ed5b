import { ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { UnderWay } from "../collections/under-way.ts";
import type { LimitObserver } from "./observer.ts";
import { boundUnread } from "./unread-memory.ts";

export interface UnreadLimits {
  /** How long a client may take none of an answer that waits for it. */
  readonly unreadTimeoutMs: number;
  /** Bytes of all answers together that wait for their clients. */
  readonly maxUnreadBytes: number;
}

export const defaultUnreadLimits: UnreadLimits = {
  unreadTimeoutMs: 30_000,
  maxUnreadBytes: 128 * 1024 * 1024,
};

/** How long a client that does not read may take to read on once a stream of it has failed. */
export const failedStreamMs = 5_000;

export interface UnreadAnswers {
  /** Holds an answer to the limits, from now until it is over. */
  watch(response: WritableResponse): void;
  close(): void;
}

type WritableResponse = ServerResponse | ServerHttp2Stream;

/**
 * Cuts answers whose clients do not read them: they leave a socket full, or never open a window of
 * HTTP/2. A stream that has nothing to say is left alone.
 */
export function createUnreadAnswers(
  { unreadTimeoutMs, maxUnreadBytes }: UnreadLimits,
  observer: LimitObserver,
): UnreadAnswers {
  const watched = new UnderWay<WritableResponse>();
  const bound = boundUnread(
    watched,
    { bytesOf: ({ writableLength }) => writableLength, cut, maxBytes: maxUnreadBytes },
    observer,
  );

  return {
    watch(response) {
      const member = watched.add(response);
      response.on("close", () => member.leave());
      // Node restarts the time whenever a part of what was written has left.
      response.setTimeout(unreadTimeoutMs);
      response.on("timeout", () => {
        if (response.writableLength === 0) return;
        observer.onCut("unread_answer");
        cut(response);
      });
    },
    close: bound.close,
  };
}

function cut(response: WritableResponse): void {
  if (response instanceof ServerResponse) response.socket?.destroy();
  else response.close(constants.NGHTTP2_CANCEL);
}
