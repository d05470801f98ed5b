import { setTimeout as delay } from "node:timers/promises";
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

/** Most bytes of an answer's body. They are read and discarded: the status says what happened. */
const maxAnswerBytes = 64 * 1024;
const firstRetryMs = 1_000;

/**
 * Sends telemetry to a collector by http/protobuf. An export is tried again while its time-out
 * allows it. Unlike OpenTelemetry's own exporters it ends in that time however slowly the collector
 * answers, and keeps nothing of the answer.
 */
export function createOtlpExporter<Items>(
  { url, headers, compression, timeoutMs, tls }: OtlpSettings,
  serializer: Pick<ISerializer<Items, unknown>, "serializeRequest">,
  signal: "trace" | "metric",
  report: Report,
) {
  const dispatcher = new Agent({ connect: tls, allowH2: false, maxHeaderSize: 16 * 1024 });
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
    const body = isGzip ? await compressed(bytes) : bytes;
    const untilMs = performance.now() + timeoutMs;
    const signal = AbortSignal.timeout(timeoutMs);
    for (let retryMs = firstRetryMs; ; retryMs *= 1.5) {
      try {
        return await attempt(body, signal);
      } catch (error) {
        const askedMs = error instanceof Refused ? error.retryAfterMs : 0;
        const waitMs = Math.max(retryMs * (0.8 + Math.random() * 0.4), askedMs);
        if (performance.now() + waitMs > untilMs) throw error;
        await delay(waitMs);
      }
    }
  }

  async function attempt(body: Uint8Array, signal: AbortSignal): Promise<void> {
    const options = { method: "POST", headers: allHeaders, body, signal, dispatcher } as const;
    const { statusCode, headers: answered, body: answer } = await request(url, options);
    let bytes = 0;
    for await (const piece of answer) {
      bytes += piece.length;
      if (bytes > maxAnswerBytes) throw new Refused(statusCode, never);
    }
    if (statusCode < 300) return;
    const mayRetry = [429, 502, 503, 504].includes(statusCode);
    throw new Refused(statusCode, mayRetry ? msOf(answered["retry-after"]?.toString()) : never);
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
const never = Number.POSITIVE_INFINITY;

/** What the collector answered instead of 2xx, or an answer that is too large. */
class Refused extends Error {
  override readonly name = "Refused";
  /** The status. */
  readonly code: number;
  readonly retryAfterMs: number;
  constructor(status: number, retryAfterMs: number) {
    super(`the collector answered ${status}`);
    this.code = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The wait that `Retry-After` asks for: seconds, or a date. */
function msOf(retryAfter = "0"): number {
  const seconds = Number.parseInt(retryAfter, 10);
  const ms = Number.isInteger(seconds) ? seconds * 1_000 : Date.parse(retryAfter) - Date.now();
  return Number.isNaN(ms) ? 0 : ms;
}
