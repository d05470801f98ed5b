import { ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { UnderWay } from "../collections/under-way.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "./connection-limits.ts";
import type { Cut, OnCut } from "./cut.ts";
import type { MemoryBudget } from "./memory-budget.ts";

type WritableResponse = ServerResponse | ServerHttp2Stream;

/**
 * Cuts responses whose clients do not read them, but leave the socket full or the HTTP/2 window
 * closed. A stream without unsent bytes is not cut. Their bytes count against the budget.
 */
export function createUnreadAnswers(
  budget: MemoryBudget,
  onCut: OnCut,
  { unreadTimeoutMs }: ConnectionLimits = defaultConnectionLimits,
) {
  const watched = new UnderWay<WritableResponse>();
  const bytesOf = ({ writableLength }: WritableResponse) => writableLength;
  const cut = (why: Cut, response: WritableResponse) => {
    onCut(why);
    if (response instanceof ServerResponse) response.socket?.destroy();
    else response.close(constants.NGHTTP2_CANCEL);
  };
  const close = budget.watch({
    ...{ writers: watched, bytesOf },
    cut: (response) => cut("unread_memory", response),
  });

  return {
    /** Applies the limits to a response until it is over. */
    watch(response: WritableResponse): void {
      const member = watched.add(response);
      response.on("close", () => member.leave());
      // Node restarts this time-out whenever it has sent a part of what was written.
      response.setTimeout(unreadTimeoutMs);
      response.on("timeout", () => {
        if (response.writableLength > 0) cut("unread_answer", response);
      });
    },
    close,
  };
}
