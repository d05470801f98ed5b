import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace";
import type { Report } from "../../report.ts";
import { createOtlpExporter } from "./otlp-exporter.ts";
import type { TracingSettings } from "./settings.ts";

/**
 * Exports spans in batches. A slow or unreachable collector costs no more than the queue: spans
 * that do not fit in are dropped, and no call waits for an export.
 */
export function createProcessor(
  kind: TracingSettings["exporters"][number],
  { otlp, batch }: TracingSettings,
  report: Report,
): SpanProcessor {
  const exporter =
    kind === "console"
      ? new ConsoleSpanExporter()
      : createOtlpExporter(otlp, ProtobufTraceSerializer, maxExports);
  let waiting = 0;

  class Batches extends BatchSpanProcessor {
    override onEnd(span: ReadableSpan): void {
      if (waiting >= batch.maxQueue) {
        report("spansEnded", { outcome: "dropped", count: 1 });
      } else {
        waiting++;
        super.onEnd(span);
      }
    }
  }

  const counted: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length;
      exporter.export(spans, (result: ExportResult) => {
        const exported = result.code === ExportResultCode.SUCCESS;
        report("spansEnded", {
          outcome: exported ? "exported" : "failed",
          count: spans.length,
          error: result.error,
        });
        // Always success: the processor would report a failure on the console.
        done({ code: ExportResultCode.SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
  };

  return new Batches({
    exporter: counted,
    scheduledDelayMillis: batch.delayMs,
    exportTimeoutMillis: batch.timeoutMs,
    maxQueueSize: batch.maxQueue,
    maxExportBatchSize: Math.min(batch.maxBatch, batch.maxQueue),
  });
}

/** Most batches under way at once. */
const maxExports = 4;
