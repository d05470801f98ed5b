import { EventEmitter, once } from "node:events";
import type { CallKind } from "../../src/net/admission.ts";
import type { Cut, OnCut } from "../../src/net/cut.ts";
import { type Report, reportTo } from "../../src/report.ts";

/** The cuts and refusals that a listener has reported. */
export interface Cuts {
  readonly report: Report;
  readonly onCut: OnCut;
  readonly cuts: Cut[];
  readonly refused: CallKind[];
  /** Resolves when a cut for this reason is reported, or was already. */
  cut(reason: Cut): Promise<void>;
}

export function recordCuts(): Cuts {
  const told = new EventEmitter().setMaxListeners(0);
  const cuts: Cut[] = [];
  const refused: CallKind[] = [];
  const onCut = (reason: Cut) => {
    cuts.push(reason);
    told.emit("cut");
  };
  return {
    cuts,
    refused,
    onCut,
    report: reportTo({
      cut: ({ limit }) => onCut(limit as Cut),
      refused: ({ kind }) => void refused.push(kind),
    }),
    async cut(reason) {
      while (!cuts.includes(reason)) await once(told, "cut");
    },
  };
}
