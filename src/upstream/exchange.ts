import type { Dispatcher } from "undici";
import { errorOfAbort } from "../errors.ts";
import { GrowingBuffer } from "../net/growing-buffer.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import type { BufferedBytes } from "../net/memory-budget.ts";
import { onePerTurn } from "../net/spread-over-turns.ts";
import { startTimer } from "../net/timer.ts";

/** Status line and headers of an answer; header names are in lower case. */
export interface HttpHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface HttpResponse extends HttpHead {
  /** The body without a byte order mark, which some services begin their JSON with. */
  readonly text: string;
}

const utf8 = new TextDecoder();

/** To read a large answer takes milliseconds: one in each turn of the event loop. */
const largeInTurn = onePerTurn();
const largeBytes = 16 * 1024;

export interface ExchangeOptions {
  readonly signal: AbortSignal;
  /** Longest the whole exchange may take, the answer's last byte included. */
  readonly timeoutMs: number;
  /** Registers the answer in the process's budget of memory, which may drop it. */
  readonly count?: ((onDrop: () => void) => BufferedBytes) | undefined;
  /** Once the request is written, only the time-out ends the exchange, not the signal. */
  readonly finishOnceSent: boolean;
  /** Called once, right before the request's first byte is written; if it throws, none is. */
  readonly onSent?: (() => void) | undefined;
}

/**
 * Why there is no answer. `caller`: the signal aborted. `kept`: the gateway did not let the request
 * out.
 */
export type FailureKind = "caller" | "kept" | "timeout" | "connection" | "tooLarge";

/** An exchange that did not get a complete answer. */
export interface ExchangeFailure {
  readonly failure: FailureKind;
  /** Whether any of the request may have been written. False is certain: not one byte was. */
  readonly sent: boolean;
  /** The head of the answer, if it had arrived. */
  readonly head: HttpHead | undefined;
  readonly cause: unknown;
}

/**
 * Sends one request and reads the whole answer, whatever its status. Writes the request to a socket
 * at most once, and does not follow redirects. Ending it early closes its socket. Never rejects.
 */
export function exchange(
  dispatcher: Pick<Dispatcher, "dispatch">,
  request: Dispatcher.DispatchOptions,
  options: ExchangeOptions,
): Promise<HttpResponse | ExchangeFailure> {
  return new Exchange(options).begin(dispatcher, request);
}

/**
 * undici calls `onRequestStart` when a socket is connected (and, for https, authenticated), right
 * before it writes the request in the same turn of the event loop, and writes nothing if the call
 * throws. So this call separates "never sent" from "perhaps sent".
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #answer = Promise.withResolvers<HttpResponse | ExchangeFailure>();
  #controller: Dispatcher.DispatchController | undefined;
  #settled = false;
  #head: HttpHead | undefined;
  readonly #body = new GrowingBuffer();
  #counted = 0;
  #buffered: BufferedBytes | undefined;
  #stopTimeout: (() => void) | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  begin(
    dispatcher: Pick<Dispatcher, "dispatch">,
    request: Dispatcher.DispatchOptions,
  ): Promise<HttpResponse | ExchangeFailure> {
    const { signal, timeoutMs } = this.#options;
    if (signal.aborted) {
      this.#onAbort();
    } else {
      signal.addEventListener("abort", this.#onAbort);
      this.#stopTimeout = startTimer(timeoutMs, () => this.#fail("timeout", undefined));
      try {
        dispatcher.dispatch(request, this);
      } catch (error) {
        this.#fail("kept", error);
      }
    }
    return this.#answer.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#settled) throw new Error("the caller gave up before the request was written");
    if (this.#controller) throw new Error("a request is written once");
    if (this.#options.finishOnceSent) this.#letCallerGo();
    try {
      this.#options.onSent?.();
    } catch (error) {
      this.#fail("kept", error);
      throw error;
    }
    this.#controller = controller;
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: HttpHead["headers"],
  ): void {
    if (status >= 200) this.#head = { status, headers };
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#counted += Math.max(chunk.length, intakeLimits.smallBytes);
    if (this.#counted > intakeLimits.answerBytes) this.#fail("tooLarge", undefined);
    if (this.#settled) return;
    this.#buffered ??= this.#options.count?.(() => this.#drop());
    this.#buffered?.hold(this.#counted);
    if (!this.#settled) this.#body.append(chunk);
  }

  onResponseEnd(): void {
    if (this.#settled || !this.#head) return;
    this.#settle();
    const { status, headers } = this.#head;
    const resolve = () =>
      this.#answer.resolve({ status, headers, text: utf8.decode(this.#body.take()) });
    if (this.#body.size > largeBytes) largeInTurn(resolve);
    else resolve();
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    const ours = !this.#controller && ourDoing.has((error as NodeJS.ErrnoException).code);
    this.#fail(ours ? "kept" : "connection", error);
  }

  /** Ends the exchange like a connection that was cut: the process holds too much. */
  #drop(): void {
    const cause = new Error("dropped: bodies and answers hold too much memory");
    this.#fail("connection", cause);
    this.#controller?.abort(cause);
  }

  readonly #onAbort = () => this.#fail("caller", errorOfAbort(this.#options.signal));

  #fail(failure: FailureKind, cause: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#body.clear();
    const sent = this.#controller !== undefined;
    this.#answer.resolve({ failure, sent, head: this.#head, cause });
    if (failure !== "connection") this.#controller?.abort(new Error(`no answer: ${failure}`));
  }

  #settle(): void {
    this.#settled = true;
    this.#buffered?.close();
    this.#letCallerGo();
    this.#stopTimeout?.();
  }

  #letCallerGo(): void {
    this.#options.signal.removeEventListener("abort", this.#onAbort);
  }
}

/** undici's errors for invalid requests and closed pools: the service had no part in them. */
const ourDoing: ReadonlySet<unknown> = new Set([
  "UND_ERR_INVALID_ARG",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
]);
