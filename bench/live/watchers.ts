/**
 * Watchers by the thousand, in a process of their own: each is a socket that plays prewritten bytes and
 * reads. What it reads is not parsed: a marker `@<sequence>:<microseconds>@` in an event tells which one
 * it is, and when it was sent. Spoken to by its parent; see `Order` and `Word`.
 */
import net from "node:net";
import { nowUs } from "./callbacks.ts";

/** What a socket sends, and what it then waits for, so many times. */
export interface Step {
  readonly send: Buffer;
  /** Empty: goes on at once. */
  readonly awaits: Buffer;
  readonly times?: number;
}

export interface Opening {
  readonly port: number;
  /** The number of its first socket; how many there are. */
  readonly first: number;
  readonly sockets: number;
  /** Watches on one socket. */
  readonly streams: number;
  /** The address that they come from. */
  readonly address: string;
  /** How many are being opened at a time. */
  readonly atOnce: number;
  readonly steps: readonly Step[];
  /**
   * They read Server-Sent Events, remember what they had, and connect again when they are cut.
   * `{n}` and `{cursor}` in what is sent are the socket's number and the last cursor; a line with the
   * latter is left out while there is none.
   */
  readonly resumes: boolean;
}

export type Order =
  | { readonly is: "open"; readonly opening: Opening }
  /** Connect again to this port when they are cut. */
  | { readonly is: "move"; readonly port: number }
  | { readonly is: "report" }
  | { readonly is: "close" };

export type Word =
  | { readonly is: "open" }
  /** All of them have this event; when the last one had it. */
  | { readonly is: "delivered"; readonly sequence: number; readonly atUs: number }
  | Report
  | { readonly is: "broken"; readonly why: string };

/** What happened since the last report. */
export interface Report {
  readonly is: "report";
  /** From when an event was sent until a watcher had it, in microseconds. */
  readonly latencies: Float64Array;
  /** Sockets that the server has cut, connections and streams that it refused. */
  readonly cut: number;
  readonly refused: number;
  /** When each socket that was cut was live again. */
  readonly resumedAtUs: Float64Array;
  /** Of sockets that resume: the sequences of each, in order. */
  readonly had: readonly (readonly number[])[];
}

const sockets: Watcher[] = [];
const counts = new Map<number, number>();
let opening: Opening | undefined;
let port = 0;
let opened = 0;
let ready = 0;
let closing = false;
let report = newReport();

function newReport() {
  const latencies: number[] = [];
  return { latencies, resumedAtUs: [] as number[], cut: 0, refused: 0 };
}

function tell(word: Word): void {
  process.send?.(word);
}

const room = Buffer.allocUnsafeSlow(65_536);
const at = 0x40;
const longestMarker = 40;
const maxTries = 100;

class Watcher {
  readonly #n: number;
  readonly #of: Opening;
  #socket: net.Socket | undefined;
  #step = -1;
  #matched = 0;
  #times = 0;
  /** The beginning of a marker that the next chunk goes on with. */
  #rest = "";
  /** What was read of an event, with `resumes`. */
  #text = "";
  #cursor = "";
  #wasLive = false;
  #retryMs: number | undefined;
  /** How often it was refused since it was live, and why it was the last time. */
  #tries = 0;
  #why = "";
  readonly had: number[] = [];

  constructor(n: number, of: Opening) {
    this.#n = n;
    this.#of = of;
    this.connect();
  }

  connect(): void {
    this.#step = -1;
    this.#text = "";
    const socket = net.connect({
      ...{ host: "127.0.0.1", port, localAddress: this.#of.address, noDelay: true },
      onread: {
        buffer: room,
        callback: (length) => {
          this.#read(room.subarray(0, length));
          return true;
        },
      },
    });
    this.#socket = socket;
    socket.on("connect", () => this.#advance());
    socket.on("error", ({ message }) => {
      this.#why = message;
    });
    socket.on("close", () => this.#onClose());
  }

  close(): void {
    this.#socket?.destroy();
  }

  #onClose(): void {
    if (closing) return;
    const isLive = this.#step === this.#of.steps.length;
    if (isLive) report.cut += 1;
    else report.refused += 1;
    const retryMs = isLive ? 0 : (this.#retryMs ?? 100 + Math.random() * 400);
    this.#retryMs = undefined;
    if (!isLive) this.#tries += 1;
    if (this.#tries > maxTries) tell({ is: "broken", why: `${this.#n} was refused: ${this.#why}` });
    else if (this.#of.resumes || !isLive) setTimeout(() => this.connect(), retryMs);
  }

  #advance(): void {
    for (;;) {
      this.#step += 1;
      this.#matched = 0;
      this.#times = 0;
      const step = this.#of.steps[this.#step];
      if (!step) break;
      if (step.send.length > 0) this.#socket?.write(this.#filled(step.send));
      if (step.awaits.length > 0) return;
    }
    this.#onLive();
  }

  #filled(bytes: Buffer): Buffer | string {
    if (!this.#of.resumes) return bytes;
    const lines = `${bytes}`.replaceAll("{n}", `${this.#n}`);
    if (this.#cursor === "") return lines.replace(/.*\{cursor\}\r\n/, "");
    return lines.replaceAll("{cursor}", this.#cursor);
  }

  #onLive(): void {
    this.#tries = 0;
    if (this.#wasLive) report.resumedAtUs.push(nowUs());
    this.#wasLive = true;
    ready += 1;
    openNext();
    if (ready === this.#of.sockets) tell({ is: "open" });
  }

  #read(bytes: Buffer): void {
    if (this.#step < this.#of.steps.length && this.#isPutOff(bytes)) return;
    let from = 0;
    while (from < bytes.length) {
      const step = this.#of.steps[this.#step];
      if (!step) break;
      // Byte by byte, since chunks end anywhere.
      const byte = bytes[from++];
      if (byte !== step.awaits[this.#matched]) this.#matched = 0;
      if (byte === step.awaits[this.#matched]) this.#matched += 1;
      if (this.#matched < step.awaits.length) continue;
      this.#matched = 0;
      this.#times += 1;
      if (this.#times === (step.times ?? 1)) this.#advance();
    }
    if (from === bytes.length) return;
    const rest = from === 0 ? bytes : bytes.subarray(from);
    if (this.#of.resumes) this.#readEvents(rest);
    else if (!this.#answersPing(rest)) this.#readMarkers(rest);
  }

  /** An answer that only says when to come again: a watch that has begun has a request id. */
  #isPutOff(bytes: Buffer): boolean {
    const text = bytes.toString("latin1");
    this.#why = text.slice(0, 100);
    const retryMs = /^retry: ?(\d+)/m.exec(text)?.[1];
    if (retryMs === undefined || text.includes("x-request-id")) return false;
    this.#retryMs = Number(retryMs);
    this.#socket?.destroy();
    return true;
  }

  /** A heartbeat comes alone, since it comes when nothing else does. */
  #answersPing(bytes: Buffer): boolean {
    if (bytes.length === 2 && bytes[0] === 0x89) {
      this.#socket?.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
      return true;
    }
    const isHttp2Ping = bytes.length === 17 && bytes[2] === 8 && bytes[3] === 6 && bytes[4] === 0;
    if (!isHttp2Ping) return false;
    const answer = Buffer.from(bytes);
    answer[4] = 1;
    this.#socket?.write(answer);
    return true;
  }

  #readMarkers(bytes: Buffer): void {
    let begin = 0;
    if (this.#rest !== "") {
      const text = this.#rest + bytes.toString("latin1", 0, longestMarker);
      const known = this.#rest.length;
      this.#rest = "";
      const end = text.indexOf("@", 1);
      if (end >= known) {
        had(text.slice(1, end));
        begin = end - known + 1;
      }
    }
    for (;;) {
      begin = bytes.indexOf(at, begin);
      if (begin < 0) return;
      const text = bytes.toString("latin1", begin, begin + longestMarker);
      const found = /^@\d+:\d+@/.exec(text)?.[0];
      if (found) {
        had(found.slice(1, -1));
        begin += found.length;
      } else {
        if (/^@\d*:?\d*$/.test(text)) this.#rest = text;
        begin += 1;
      }
    }
  }

  #readEvents(bytes: Buffer): void {
    const blocks = (this.#text + bytes.toString("latin1")).split("\n\n");
    this.#text = blocks.pop() ?? "";
    for (const block of blocks) {
      this.#cursor = /(?:^|\n)id: ?(\S+)/.exec(block)?.[1] ?? this.#cursor;
      const marker = /@(\d+:\d+)@/.exec(block)?.[1];
      if (marker) this.had.push(had(marker));
    }
  }
}

function had(marker: string): number {
  const [sequence = 0, sentUs = 0] = marker.split(":").map(Number);
  const atUs = nowUs();
  report.latencies.push(atUs - sentUs);
  const count = (counts.get(sequence) ?? 0) + 1;
  counts.set(sequence, count);
  if (opening && count === opening.sockets * opening.streams) {
    counts.delete(sequence);
    tell({ is: "delivered", sequence, atUs });
  }
  return sequence;
}

function openNext(): void {
  if (!opening || opened === opening.sockets) return;
  sockets.push(new Watcher(opening.first + opened, opening));
  opened += 1;
}

process.on("message", (order: Order) => {
  switch (order.is) {
    case "open":
      opening = order.opening;
      port = opening.port;
      for (let i = 0; i < opening.atOnce; i++) openNext();
      return;
    case "move":
      port = order.port;
      return;
    case "report": {
      const { cut, refused } = report;
      tell({
        ...{ is: "report", cut, refused },
        latencies: Float64Array.from(report.latencies),
        resumedAtUs: Float64Array.from(report.resumedAtUs),
        had: opening?.resumes ? sockets.map((socket) => socket.had) : [],
      });
      report = newReport();
      return;
    }
    case "close":
      closing = true;
      for (const socket of sockets) socket.close();
      process.disconnect();
  }
});
process.on("disconnect", () => {
  closing = true;
  for (const socket of sockets) socket.close();
});
