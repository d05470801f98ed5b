import { createMemoryKernel, type MemoryKernelOptions } from "../stores/memory/kernel.ts";
import { Ledger, type LedgerOptions } from "./ledger.ts";
import { type EventCodec, readEvent, writeEvent } from "./stored-event.ts";

export type MemoryLedgerOptions = MemoryKernelOptions &
  Partial<Pick<LedgerOptions, "firstLookMs" | "giveUpMs" | "report" | "lettersBound">>;

/** A ledger in this process's memory: it is lost when the process ends. */
export function createMemoryLedger(options: MemoryLedgerOptions): Ledger {
  return new Ledger({
    ...{ firstLookMs: 60_000, giveUpMs: 86_400_000 },
    ...options,
    kernel: createMemoryKernel(options),
    codecOf: () => plainCodec,
  });
}

/** Nothing is sealed: the memory of this process holds the secrets anyway. */
const plainCodec: EventCodec = {
  write: (event, trace) => writeEvent(undefined, event, trace),
  read: (bytes) => readEvent(undefined, bytes).event,
};
