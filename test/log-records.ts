import type { LogLevel } from "../src/report.ts";
import { createLogger } from "../src/telemetry/log.ts";

/** A gateway's log from this level on, and its records so far. */
export function logRecords(level: LogLevel = "info") {
  const records: Record<string, unknown>[] = [];
  const write = (line: string) => void records.push(JSON.parse(line));
  return { records, log: createLogger(level, { write }) };
}
