import { EventEmitter, once } from "node:events";
import type { RefusableKind } from "../../src/net/admission.ts";
import type { Cut } from "../../src/net/cut.ts";
import { reportTo } from "../../src/report.ts";

export type Cuts = ReturnType<typeof recordCuts>;

/** The cuts and refusals that a listener has reported. */
export function recordCuts() {
  const told = new EventEmitter().setMaxListeners(0);
  const cuts: Cut[] = [];
  const refused: RefusableKind[] = [];
  const onCut = (reason: Cut) => {
    cuts.push(reason);
    told.emit("cut");
  };
  return {
    ...{ cuts, refused, onCut },
    report: reportTo({
      cut: ({ limit }) => onCut(limit as Cut),
      refused: ({ kind }) => void refused.push(kind),
    }),
    /** Resolves when a cut for this reason is reported, or was already. */
    async cut(reason: Cut) {
      while (!cuts.includes(reason)) await once(told, "cut");
    },
  };
}
