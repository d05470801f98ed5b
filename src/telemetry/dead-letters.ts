import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { DeadLettersObserver } from "../admin/dead-letters.ts";
import type { EventLog } from "../ledger/log.ts";

/** Counts dead letters that wait for an operator, and logs those that operators discard. */
export function deadLettersTelemetry(registry: Registry, log: Logger, accounts: readonly string[]) {
  const waiting = new Gauge({
    name: "payments_gateway_dead_letters",
    help: "Dead letters: callbacks that were not understood and wait for an operator",
    labelNames: ["account"],
    registers: [registry],
  });
  const observer: DeadLettersObserver = {
    onDiscarded({ operator, letter }) {
      log.warn({ operator, ...letter }, "dead letter discarded");
    },
  };
  return {
    observer,
    async refresh(eventLog: Pick<EventLog, "countDeadLetters">): Promise<void> {
      const counted = accounts.map(async (account) => {
        try {
          waiting.set({ account }, await eventLog.countDeadLetters(account));
        } catch {
          // The store is unreachable: report no number rather than an old one.
          waiting.remove({ account });
        }
      });
      await Promise.all(counted);
    },
  };
}
