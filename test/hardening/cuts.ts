import { EventEmitter, once } from "node:events";
import type { CallKind } from "../../src/net/admission.ts";
import type { Cut, LimitObserver } from "../../src/net/observer.ts";

/** The cuts and refusals that a listener has reported. */
export interface Cuts {
  readonly observer: LimitObserver;
  readonly cuts: Cut[];
  readonly refused: CallKind[];
  /** Resolves when a cut for this reason is reported, or was already. */
  cut(reason: Cut): Promise<void>;
}

export function recordCuts(): Cuts {
  const told = new EventEmitter().setMaxListeners(0);
  const cuts: Cut[] = [];
  const refused: CallKind[] = [];
  return {
    cuts,
    refused,
    observer: {
      onCut(reason) {
        cuts.push(reason);
        told.emit("cut");
      },
      onRefused(kind) {
        refused.push(kind);
      },
    },
    async cut(reason) {
      while (!cuts.includes(reason)) await once(told, "cut");
    },
  };
}
