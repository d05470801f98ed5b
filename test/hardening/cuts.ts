import { EventEmitter, once } from "node:events";
import type { CallKind } from "../../src/net/admission.ts";
import type { Cut, LimitObserver } from "../../src/net/observer.ts";

/** What a listener told of its limits. */
export interface Cuts {
  readonly observer: LimitObserver;
  readonly cuts: Cut[];
  readonly refused: CallKind[];
  /** Resolves when this was cut, before or from now on. */
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
