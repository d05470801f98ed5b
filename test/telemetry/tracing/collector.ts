import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A span as the collector was sent it. */
export interface ExportedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: "internal" | "server" | "client" | "other";
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Ids of traces and spans. */
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly failed: boolean;
}

/** An OTLP collector (http/protobuf) on a port of its own. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly ExportedSpan[];
  /** Attributes of the resources that spans came with. */
  readonly resources: readonly Readonly<Record<string, unknown>>[];
  /** Every byte of every body, as one text. */
  readonly raw: () => string;
  readonly headers: readonly Readonly<Record<string, unknown>>[];
  /** Resolves with the first span that fits, sent already or not. */
  span(fits: (span: ExportedSpan) => boolean): Promise<ExportedSpan>;
  close(): void;
}

/** @param answer the status of every answer; undefined: there is none */
export async function startCollector(
  answer: () => number | undefined = () => 200,
): Promise<Collector> {
  const spans: ExportedSpan[] = [];
  const resources: Record<string, unknown>[] = [];
  const bodies: Buffer[] = [];
  const headers: Record<string, unknown>[] = [];
  const came = new EventEmitter().setMaxListeners(0);
  const server = createServer(async (request, response) => {
    const sent = await buffer(request);
    const status = answer();
    if (status === undefined) return;
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    headers.push({ ...request.headers, url: request.url });
    if (status === 200) {
      bodies.push(body);
      for (const told of readRequest(body)) {
        resources.push(told.resource);
        spans.push(...told.spans);
      }
    }
    response.writeHead(status, { "content-type": "application/x-protobuf" }).end();
    came.emit("spans");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    resources,
    headers,
    raw: () => Buffer.concat(bodies).toString("latin1"),
    async span(fits) {
      for (;;) {
        const span = spans.find(fits);
        if (span) return span;
        await once(came, "spans", { signal: AbortSignal.timeout(20_000) });
      }
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What makes a gateway send its spans here, soon. */
export function tracedBy({ url }: Pick<Collector, "url">): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: "50" };
}

/** opentelemetry/proto/collector/trace/v1: ExportTraceServiceRequest. */
function readRequest(bytes: Uint8Array) {
  return all(bytes, 1).map((resourceSpans) => ({
    resource: attributesOf(all(all(resourceSpans, 1)[0] ?? nothing, 1)),
    spans: all(resourceSpans, 2).flatMap((scopeSpans) => all(scopeSpans, 2).map(readSpan)),
  }));
}

const kinds = ["other", "internal", "server", "client"] as const;

function readSpan(bytes: Uint8Array): ExportedSpan {
  const fields = fieldsOf(bytes);
  const id = (no: number) => Buffer.from((fields.get(no)?.[0] as Uint8Array) ?? nothing);
  const status = fieldsOf((fields.get(15)?.[0] as Uint8Array) ?? nothing);
  return {
    traceId: id(1).toString("hex"),
    spanId: id(2).toString("hex"),
    parentSpanId: id(4).toString("hex"),
    name: id(5).toString("utf8"),
    kind: kinds[Number(fields.get(6)?.[0] ?? 0)] ?? "other",
    attributes: attributesOf(all(bytes, 9)),
    links: all(bytes, 13).map((link) => ({
      traceId: Buffer.from(all(link, 1)[0] ?? nothing).toString("hex"),
      spanId: Buffer.from(all(link, 2)[0] ?? nothing).toString("hex"),
    })),
    failed: Number(status.get(3)?.[0] ?? 0) === 2,
  };
}

function attributesOf(pairs: readonly Uint8Array[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key] = all(pair, 1);
      const value = fieldsOf(all(pair, 2)[0] ?? nothing);
      const text = value.get(1)?.[0];
      const [whole, float, yes] = [value.get(3)?.[0], value.get(4)?.[0], value.get(2)?.[0]];
      const read =
        text instanceof Uint8Array
          ? Buffer.from(text).toString("utf8")
          : yes !== undefined
            ? Boolean(yes)
            : Number(whole ?? float);
      return [Buffer.from(key ?? nothing).toString("utf8"), read];
    }),
  );
}

const nothing = new Uint8Array();

/** All values of one field that has messages, texts or bytes. */
function all(bytes: Uint8Array, no: number): Uint8Array[] {
  return (fieldsOf(bytes).get(no) ?? []).filter((value) => value instanceof Uint8Array);
}

function fieldsOf(bytes: Uint8Array): Map<number, (Uint8Array | number)[]> {
  const fields = new Map<number, (Uint8Array | number)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag();
    const values = fields.get(no) ?? [];
    fields.set(no, values);
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(Number(reader.uint64()));
    else if (type === WireType.Bit64)
      values.push(no === 4 ? reader.double() : Number(reader.fixed64()));
    else reader.skip(type, no);
  }
  return fields;
}
