import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { WireFault } from "../wire/wire.ts";

/** Counts and logs a field of an answer or a callback whose value was not read as it was sent. */
export type ReportFieldFault = (
  fault: WireFault,
  where: { readonly endpoint: string; readonly about: Readonly<Record<string, string>> },
) => void;

/** Most words that are logged, so that their record stays small; more are counted alone. */
const maxWords = 1_000;

export function fieldFaultsTelemetry(registry: Registry, log: Logger): ReportFieldFault {
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
  const unrecognized = new Counter({
    name: "payments_gateway_upstream_unrecognized_values_total",
    help: "Values of answers and callbacks that the gateway does not know: kept, in `unrecognized`, and of no effect",
    labelNames: ["field"],
    registers,
  });
  const logged = new Set<string>();
  return ({ path: field, kind, value }, { endpoint, about }) => {
    if (kind !== "unrecognized" || value === undefined) {
      (kind === "malformed" ? malformedTexts : faults).inc({ endpoint, field });
      log.warn({ ...about, field, fault: kind }, faultMessage);
      return;
    }
    unrecognized.inc({ field });
    const word = `${field} ${value.toLowerCase()}`;
    if (logged.has(word) || logged.size >= maxWords) return;
    logged.add(word);
    log.warn({ ...about, field, value }, unrecognizedMessage);
  };
}

const faultMessage = "unexpected value from the payments service: field left unset";

const unrecognizedMessage =
  "the payments service sent a value that the gateway does not know: it is kept in `unrecognized` and changes no state. Logged once per value; metrics count it";
