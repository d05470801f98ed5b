import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { defaultConnectionLimits } from "./connection-limits.ts";
import type { Cut, OnCut } from "./cut.ts";
import type { Outlet } from "./intake.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/**
 * Cuts a response whose client does not read it, but leaves the socket full or the HTTP/2 window
 * closed. A stream without unsent bytes is not cut. Its bytes count against the budget.
 */
export function limitUnread(
  response: Outlet,
  budget: MemoryBudget,
  onCut: OnCut,
  unreadTimeoutMs = defaultConnectionLimits.unreadTimeoutMs,
): void {
  const cut = (why: Cut) => {
    onCut(why);
    if (response instanceof ServerResponse) response.socket?.destroy();
    else response.close(constants.NGHTTP2_CANCEL);
  };
  const member = budget.watch({
    bytes: () => response.writableLength,
    cut: () => cut("unread_memory"),
  });
  response.on("close", () => member.leave());
  // Node restarts this time-out whenever it has sent a part of what was written.
  response.setTimeout(unreadTimeoutMs);
  response.on("timeout", () => {
    if (response.writableLength > 0) cut("unread_answer");
  });
}
