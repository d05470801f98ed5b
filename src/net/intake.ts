import { IncomingMessage, type ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { oncePer } from "../collections/once-per.ts";
import { GatewayError } from "../errors.ts";
import type { Admission, Slot } from "./admission.ts";
import { createAllowance } from "./allowance.ts";
import type { OnCut } from "./cut.ts";
import { GrowingBuffer } from "./growing-buffer.ts";
import { intakeLimits } from "./intake-limits.ts";
import { type BufferedBytes, createMemoryBudget, type MemoryBudget } from "./memory-budget.ts";
import { overloaded, turnOf } from "./overloaded.ts";
import { ReadTurns } from "./read-turns.ts";

/** The first few pieces of each body do not count as small. */
const freePieces = 4;

export type Source = IncomingMessage | ServerHttp2Stream;
/** The stream that a response's body is written to. */
export type Outlet = ServerResponse | ServerHttp2Stream;

/** How a body ended: whole, or why it was not read to its end. */
export type Received = Buffer | Unread;

/**
 * `too-large`: it exceeds the limit, and its rest is discarded. `slow`: it did not arrive in time.
 * `gone`: its client left before its end. `overloaded`: it was dropped to free memory.
 */
export type Unread = "too-large" | "slow" | "gone" | "overloaded";

export interface BodyLimits {
  readonly maxBytes: number;
  /** For the whole body, in milliseconds, from now on. Default: the server's own time-out. */
  readonly timeoutMs?: number | undefined;
  /**
   * The call's slot, suspended while the body is late: it must not take the place of a request that
   * has arrived.
   */
  readonly slot?: Slot | undefined;
}

/** How long a body may take to arrive before the slot of its call is suspended. */
const graceMs = 100;

/** Takes in the bodies of all requests. */
export class Intake {
  readonly budget: MemoryBudget;
  /** Of the connections of all listeners that take bodies in. */
  readonly readTurns = new ReadTurns();
  readonly #admission: Admission;
  /** Whether a connection may send one more small piece. */
  readonly mayBeSmall = oncePer((_: object) => createAllowance(intakeLimits.smallPieces));

  /** @param options.budget default: one of its own */
  constructor({ admission, budget }: { admission: Admission; budget?: MemoryBudget }) {
    this.budget = budget ?? createMemoryBudget();
    this.#admission = admission;
  }

  /**
   * Begins to hold a request's body, as its headers arrive.
   * @param call closes when the request is over, whether it was answered or not
   * @param cut ends the connection if its client sends bodies in too many small pieces
   */
  body(source: Source, call: Outlet, connection: object, cut: () => void): Body {
    return new Body(source, call, connection, cut, this);
  }

  /** The same for a request by HTTP/1.1, whose connection is destroyed then. */
  bodyOf(request: IncomingMessage, response: ServerResponse, onCut: OnCut): Body {
    const { socket } = request;
    return this.body(request, response, socket, () => {
      onCut("small_pieces");
      socket.destroy();
    });
  }

  /** Resolves in a turn of the connection among the calls: what is decoded in it delays nobody. */
  turn(connection: object): Promise<unknown> {
    return turnOf(this.#admission, "exempt", connection);
  }
}

/** The error for a body that was not read to its end. */
function unreadError(why: Unread, tooLarge: () => Error): Error {
  if (why === "too-large") return tooLarge();
  if (why === "overloaded") return overloaded();
  return new GatewayError("CANCELLED", "the caller went away");
}

/** What a body takes beside its bytes. */
const overheadBytes = 1_024;

/** The body of one request. It is kept in one buffer, which counts as what it takes. */
export class Body {
  readonly #source: Source;
  readonly #call: Outlet;
  readonly #connection: object;
  readonly #cut: () => void;
  readonly #intake: Intake;
  readonly #buffer = new GrowingBuffer();
  #total = 0;
  #pieces = 0;
  #maxBytes = intakeLimits.bodyBytes;
  #buffered: BufferedBytes | undefined;
  /** A body that comes with its length is read only once it is asked for. */
  #isRead = false;
  #isCut = false;
  /** Whether its pieces are counted before they are read. */
  #isCounted = false;
  #ended: "whole" | Unread | undefined;
  #wake: (() => void) | undefined;

  constructor(source: Source, call: Outlet, connection: object, cut: () => void, intake: Intake) {
    this.#source = source;
    this.#call = call;
    this.#connection = connection;
    this.#cut = cut;
    this.#intake = intake;
    // Each piece of a body with a length costs its client a packet, so that few can wait here.
    const isPlain = source instanceof IncomingMessage && !source.headers["transfer-encoding"];
    if (!isPlain) this.#read();
  }

  /**
   * The whole body: now if it has arrived, else in a turn among the calls.
   * @throws GatewayError RESOURCE_EXHAUSTED if it was dropped, CANCELLED if its client has left, or
   * what `tooLarge` makes
   */
  whole(limits: BodyLimits, tooLarge: () => Error): Buffer | Promise<Buffer> {
    return this.atHand(limits.maxBytes) ?? this.#late(limits, tooLarge);
  }

  async #late(limits: BodyLimits, tooLarge: () => Error): Promise<Buffer> {
    const received = await this.receive(limits);
    if (typeof received === "string") throw unreadError(received, tooLarge);
    await this.#intake.turn(this.#connection);
    return received;
  }

  /** The whole body, if it has arrived; undefined otherwise, or if it exceeds `maxBytes`. */
  atHand(maxBytes: number): Buffer | undefined {
    if (this.#isRead) {
      return this.#ended === "whole" && this.#buffer.size <= maxBytes ? this.#take() : undefined;
    }
    const { complete, destroyed, readableLength, headers } = this.#source as IncomingMessage;
    // Node says that a body is complete in a later turn than the one in which it hands it over.
    const isWhole = complete || readableLength === Number(headers["content-length"]);
    if (!isWhole || destroyed || readableLength > maxBytes) return undefined;
    this.#isRead = true;
    return this.#source.read() ?? Buffer.alloc(0);
  }

  /** Resolves with the whole body, or with why it is not there. */
  async receive({ maxBytes, timeoutMs, slot }: BodyLimits): Promise<Received> {
    this.#limit(maxBytes);
    this.#read();
    const tooSlow = () => {
      this.#end("slow");
      if (!(this.#source instanceof IncomingMessage)) this.#source.close(constants.NGHTTP2_CANCEL);
    };
    const end = timeoutMs === undefined ? undefined : setTimeout(tooSlow, timeoutMs);
    const late = slot && setTimeout(slot.suspend, graceMs);
    while (!this.#ended) await this.#change();
    clearTimeout(end);
    clearTimeout(late);
    slot?.resume();
    return this.#ended === "whole" ? this.#take() : this.#ended;
  }

  /**
   * What has arrived since the last call; undefined at the end. For a body of many messages, whose
   * bytes may be `maxBytes` in all. @throws as `whole`
   */
  async next(maxBytes: number, tooLarge: () => Error): Promise<Buffer | undefined> {
    this.#limit(maxBytes);
    this.#read();
    if (this.#buffer.size === 0 && !this.#ended) await this.#change();
    if (this.#ended && this.#ended !== "whole") throw unreadError(this.#ended, tooLarge);
    return this.#buffer.size > 0 ? this.#take() : undefined;
  }

  /** Resolves when more has arrived, or the body has ended. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Frees what has arrived, and discards the rest. */
  discard(): void {
    this.#end("gone");
    this.#ended = "gone";
    this.#free();
  }

  #limit(maxBytes: number): void {
    this.#maxBytes = maxBytes;
    if (this.#total <= maxBytes) return;
    if (this.#ended === "whole") this.#ended = undefined;
    this.#end("too-large");
  }

  #read(): void {
    if (this.#isRead) return;
    this.#isRead = true;
    const source = this.#source;
    if (source.readableEnded) this.#ended = "whole";
    else if (source.destroyed) this.#ended = "gone";
    else {
      if (source instanceof IncomingMessage && source.headers["transfer-encoding"]) {
        this.#countChunks(source);
      }
      source.on("data", this.#onData).on("end", this.#onEnd);
      source.on("close", this.#onGone).on("error", this.#onGone);
    }
  }

  /**
   * Counts the chunks of an HTTP/1.1 body as the parser finds them. It finds ten thousand in one
   * read, and `data` events come only after all of them.
   */
  #countChunks(source: IncomingMessage): void {
    const push = source.push.bind(source);
    this.#isCounted = true;
    source.push = (piece: Buffer | null, encoding?: BufferEncoding) =>
      piece !== null && !this.#mayCome(piece) ? false : push(piece, encoding);
  }

  /** Whether a piece may be one more of its connection's small ones; cuts the connection if not. */
  #mayCome(piece: Buffer): boolean {
    this.#pieces += 1;
    // An ordinary body, which comes in one piece, costs nothing here.
    if (this.#pieces > 1) this.#intake.readTurns.hasRead();
    if (piece.length >= intakeLimits.smallBytes || this.#pieces <= freePieces) return true;
    if (this.#isCut) return false;
    if (this.#intake.mayBeSmall(this.#connection)()) return true;
    this.#isCut = true;
    this.#end("gone");
    this.#cut();
    return false;
  }

  readonly #onData = (piece: Buffer) => {
    if (!this.#isCounted && !this.#mayCome(piece)) return;
    this.#total += piece.length;
    if (this.#total > this.#maxBytes) return this.#end("too-large");
    if (this.#count(overheadBytes + this.#buffer.append(piece))) this.#wake?.();
  };

  /** An HTTP/2 stream that is closed before its end has this event, too. */
  readonly #onEnd = () => this.#end(this.#source.closed ? "gone" : "whole");
  readonly #onGone = () => this.#end("gone");
  /** Of a call that was refused, or whose client left before its turn, nobody takes the body. */
  readonly #onOver = () => this.discard();

  /** Counts the memory of the body. Returns false if it was dropped for it. */
  #count(bytes: number): boolean {
    if (!this.#buffered) {
      const onDrop = () => this.#end("overloaded");
      this.#buffered = this.#intake.budget.open(this.#connection, onDrop);
      this.#call.on("close", this.#onOver);
    }
    this.#buffered.hold(bytes);
    return this.#ended === undefined;
  }

  #take(): Buffer {
    const taken = this.#buffer.take();
    this.#free();
    return taken;
  }

  #free(): void {
    if (this.#buffered) this.#call.off("close", this.#onOver);
    this.#buffered?.close();
    this.#buffered = undefined;
    this.#buffer.clear();
  }

  #end(how: "whole" | Unread): void {
    if (this.#ended) return;
    this.#ended = how;
    if (how !== "whole") this.#free();
    const source = this.#source;
    if (this.#isRead) {
      // A response that lasts long, such as a watch, retains none of this.
      source.off("data", this.#onData).off("end", this.#onEnd);
      source.off("close", this.#onGone).off("error", this.#onGone);
    }
    source.on("error", ignore);
    // Discard the rest: the next request on the connection waits behind it.
    if (!source.readableEnded) source.resume();
    this.#wake?.();
  }
}

const ignore = () => {};
