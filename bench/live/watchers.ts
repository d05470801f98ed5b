/**
 * A process with thousands of watchers: each is a socket that sends prewritten bytes and reads. It
 * does not parse events: a marker `@<sequence>:<microseconds>@` in an event has its number and the
 * time of sending. The parent process sends an `Order`, and this process sends a `Word`.
 */
import net from "node:net";
import { nowUs } from "./callbacks.ts";

/** The bytes that a socket sends, and those that it must then receive `times` times. */
export interface Step {
  readonly send: Buffer;
  /** Empty: does not wait. */
  readonly awaits: Buffer;
  readonly times?: number;
}

export interface Opening {
  readonly port: number;
  /** The number of the first socket, and the number of sockets. */
  readonly first: number;
  readonly sockets: number;
  /** Watches on one socket. */
  readonly streams: number;
  /** The local address of the sockets. */
  readonly address: string;
  /** Most sockets to open at the same time. */
  readonly atOnce: number;
  readonly steps: readonly Step[];
  /**
   * Sockets parse Server-Sent Events, store the sequences received, and reconnect when they are
   * cut. `{n}` and `{cursor}` in the bytes to send are replaced by the socket's number and its last
   * cursor; a line with `{cursor}` is omitted while there is no cursor.
   */
  readonly resumes: boolean;
}

export type Order =
  | { readonly is: "open"; readonly opening: Opening }
  /** The port to which cut sockets reconnect. */
  | { readonly is: "move"; readonly port: number }
  | { readonly is: "report" }
  | { readonly is: "close" };

export type Word =
  | { readonly is: "open" }
  /** All watches of the process have received the event, the last one at `atUs`. */
  | { readonly is: "delivered"; readonly sequence: number; readonly atUs: number }
  | Report
  | { readonly is: "broken"; readonly why: string };

/** Figures since the last report. */
export interface Report {
  readonly is: "report";
  /** Microseconds from the sending of an event until a watcher received it. */
  readonly latencies: Float64Array;
  /** Number of live sockets that were cut, and of failed attempts to open a watch. */
  readonly cut: number;
  readonly refused: number;
  /** When each cut socket was live again. */
  readonly resumedAtUs: Float64Array;
  /** With `resumes`: all sequences that each socket has received, in order. */
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
const webSocketPing = Buffer.from([0x89, 0]);
const webSocketPong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
/** The head of a PING without flags, on stream 0; 8 bytes follow. */
const http2Ping = Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0]);
const http2PingLength = 17;
const maxTries = 100;

class Watcher {
  readonly #n: number;
  readonly #of: Opening;
  readonly #isHttp2: boolean;
  #socket: net.Socket | undefined;
  #step = -1;
  #matched = 0;
  #times = 0;
  /** The beginning of a marker that continues in the next chunk. */
  #rest = "";
  /** With `resumes`: the part of an event read so far. */
  #text = "";
  #cursor = "";
  #wasLive = false;
  #retryMs: number | undefined;
  /** How often the socket was refused since it was last live, and the last reason. */
  #tries = 0;
  #why = "";
  readonly had: number[] = [];

  constructor(n: number, of: Opening) {
    this.#n = n;
    this.#of = of;
    this.#isHttp2 = of.steps[0]?.send.includes("PRI * HTTP/2") ?? false;
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
      // Compare byte by byte, since a chunk may end anywhere.
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
    else {
      this.#answerPings(rest);
      this.#readMarkers(rest);
    }
  }

  /** Closes the socket if the answer only says when to retry; an open watch has a request id. */
  #isPutOff(bytes: Buffer): boolean {
    const text = bytes.toString("latin1");
    this.#why = text.slice(0, 100);
    const retryMs = /^retry: ?(\d+)/m.exec(text)?.[1];
    if (retryMs === undefined || text.includes("x-request-id")) return false;
    this.#retryMs = Number(retryMs);
    this.#socket?.destroy();
    return true;
  }

  /** Answers the pings in a chunk. No event of the protocol contains the bytes of one. */
  #answerPings(bytes: Buffer): void {
    const ping = this.#isHttp2 ? http2Ping : webSocketPing;
    for (let from = bytes.indexOf(ping); from >= 0; from = bytes.indexOf(ping, from + 1)) {
      if (!this.#isHttp2) this.#socket?.write(webSocketPong);
      else {
        const answer = Buffer.from(bytes.subarray(from, from + http2PingLength));
        answer[4] = 1;
        this.#socket?.write(answer);
      }
    }
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
