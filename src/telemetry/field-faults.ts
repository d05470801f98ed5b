import { Counter, type Registry } from "prom-client";
import type { WireFault } from "../wire/wire.ts";

/** Counts a field of an answer or a callback whose value was not read as it was sent. */
export type CountFieldFault = (
  kind: WireFault["kind"],
  where: { readonly endpoint: string; readonly field: string },
) => void;

export function fieldFaultsTelemetry(registry: Registry): CountFieldFault {
  const registers = [registry];
  const faults = new Counter({
    name: "payments_gateway_upstream_field_faults_total",
    help: "Fields of answers and callbacks left unset because their type was unexpected, and objects left out because their shape was",
    labelNames: ["endpoint", "field"],
    registers,
  });
  const malformedTexts = new Counter({
    name: "payments_gateway_upstream_malformed_texts_total",
    help: "Texts of answers and callbacks with invalid Unicode (half of a surrogate pair), read as U+FFFD",
    labelNames: ["endpoint", "field"],
    registers,
  });
  return (kind, where) => (kind === "malformed" ? malformedTexts : faults).inc({ ...where });
}
