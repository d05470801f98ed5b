import type { DeadLetters } from "../admin/dead-letters.ts";
import { replay } from "../callbacks/replay.ts";
import type { EventLog } from "../events/log.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";

/** The dead letters of all accounts, newest first. */
export function deadLettersOf(accounts: readonly string[], log: EventLog): DeadLetters {
  return {
    async list() {
      const lists = accounts.map(async (account) =>
        (await log.deadLetters(account)).map(({ id, kind, reason, body, receivedAtMs }) => ({
          account,
          id,
          resource: kind === EventKind.PAYOUT ? ("payouts" as const) : ("payments" as const),
          reason,
          receivedAt: new Date(receivedAtMs).toISOString(),
          ...(body === undefined ? { locked: true as const } : { body }),
        })),
      );
      const all = (await Promise.all(lists)).flat();
      return all.toSorted((a, b) => b.receivedAt.localeCompare(a.receivedAt));
    },
    async replay(account, id) {
      return accounts.includes(account) ? replay(log, account, id) : "not_found";
    },
  };
}
