import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ISerializer } from "@opentelemetry/otlp-transformer";
import { Agent, request } from "undici";
import type { Report } from "../../report.ts";
import { version } from "../../version.ts";
import type { OtlpSettings } from "./settings.ts";

/** Has a provider send what it still has, within `timeoutMs`. Never rejects. */
export async function shutDown(
  provider: { shutdown(): Promise<void> },
  timeoutMs: number,
): Promise<void> {
  const timeUp = new Promise((resolve) => setTimeout(resolve, timeoutMs).unref());
  await Promise.race([provider.shutdown().catch(() => {}), timeUp]);
}

/**
 * Sends telemetry to a collector by http/protobuf. What it does not take is lost and counted: to try
 * again would take place from what comes next. Unlike OpenTelemetry's own exporters it ends in its
 * time-out however slowly the collector answers, and keeps nothing of the answer.
 */
export function createOtlpExporter<Items>(
  { url, headers, compression, timeoutMs, tls }: OtlpSettings,
  serializer: Pick<ISerializer<Items, unknown>, "serializeRequest">,
  signal: "trace" | "metric",
  report: Report,
) {
  const dispatcher = new Agent({
    ...{ connect: tls, allowH2: false, maxHeaderSize: 16 * 1024, maxResponseSize: 64 * 1024 },
  });
  const isGzip = compression === "gzip";
  const allHeaders = {
    ...headers,
    "content-type": "application/x-protobuf",
    "user-agent": `payments-gateway/${version}`,
    ...(isGzip && { "content-encoding": "gzip" }),
  };

  async function send(items: Items): Promise<void> {
    const bytes = serializer.serializeRequest(items);
    if (!bytes) throw new Error("nothing to send");
    const { statusCode, body } = await request(url, {
      ...{ method: "POST", headers: allHeaders, dispatcher },
      body: isGzip ? await compressed(bytes) : bytes,
      signal: AbortSignal.timeout(timeoutMs),
    });
    // Read and discarded: the status says what happened.
    await body.text();
    if (statusCode < 300) return;
    const refusal = new Error(`the collector answered ${statusCode}`);
    throw Object.assign(refusal, { name: "Refused", code: statusCode });
  }

  return {
    export(items: Items, done: (result: ExportResult) => void): void {
      const about = { signal, count: Array.isArray(items) ? items.length : 1 };
      send(items)
        .then(
          () => report("telemetrySent", { ...about, outcome: "exported" }),
          (error) => report("telemetrySent", { ...about, outcome: "failed", error }),
        )
        // Always success: the SDK would report a failure on the console.
        .finally(() => done({ code: ExportResultCode.SUCCESS }));
    },
    async forceFlush(): Promise<void> {},
    /** Waits for requests that are under way. */
    shutdown: () => dispatcher.close(),
  };
}

const compressed = promisify<Uint8Array, Buffer>(gzip);
