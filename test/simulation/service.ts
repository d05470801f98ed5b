import type { Dispatcher } from "undici";
import { sign } from "../../src/wire/signature.ts";
import type { PostRecord } from "./history.ts";
import { password } from "./merchant.ts";
import type { Callbacks, Turn } from "./plan.ts";
import { currentCall, type Recorder } from "./recorder.ts";
import { asNobody, currentProcess, type Process, type Scheduler } from "./scheduler.ts";

/** A gateway that takes callbacks. */
export interface CallbackTarget {
  readonly process: Process;
  receive(resource: "payments" | "payouts", body: Buffer, signature: string): Promise<number>;
}

export interface ServiceOptions {
  readonly scheduler: Scheduler;
  readonly recorder: Recorder;
  readonly perSecond: number;
  /** Longest that a gateway waits for an answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly targets: () => readonly CallbackTarget[];
  /**
   * Some answers about a payment are sent twice; the second one arrives on an idle connection, or
   * as the answer to the next request.
   */
  readonly answersTwice: boolean;
}

type Status = "pending" | "success" | "failure";

/** One entry of the ledger: an attempt to move money. */
interface Attempt {
  readonly paymentId: string;
  readonly externalId: string;
  readonly operation: "payment" | "recurrent" | "confirm" | "payout";
  readonly post: PostRecord;
  readonly held: boolean;
  readonly callbacks: Callbacks;
  status: Status;
}

/** What the service does with requests of one name. */
export interface Orders {
  readonly turns: readonly Turn[];
  readonly callbacks: Callbacks;
  readonly held: boolean;
}

/** A request that waits for its answer on a connection. */
interface Asking {
  /** The gateway compares the answer's external_id with this one; absent: it cannot. */
  readonly externalId?: string | undefined;
  hear(message: Message): void;
}

/** An answer on its way. */
interface Message {
  readonly status: number;
  readonly body: string;
  readonly headers: Record<string, string>;
  /** The request that it answers. */
  readonly to: Asking;
  /** Called when it reaches the request that it answers. */
  onHeard(): void;
}

/** HTTP/1.1: whatever arrives counts as the answer to the request that was written last. */
interface Connection {
  asking: Asking | undefined;
  isClosed: boolean;
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly afterMs: number;
  /** The requests whose outcome it states understandably: its own, or the one that paid before. */
  readonly about?: readonly PostRecord[];
}

/** A payments service with a ledger, a limit of its own, and all kinds of failures to answer. */
export class Service {
  readonly #options: ServiceOptions;
  readonly #ledger: Attempt[] = [];
  readonly #orders = new Map<string, { rest: Turn[]; orders: Orders }>();
  /** When the requests of the last second were admitted. */
  #admitted: number[] = [];
  #perSecond: number;
  #trouble: "refuses" | "silent" | undefined;
  #posts = 0;
  /** Callbacks that are in flight or will be sent again. */
  #underWay = 0;
  /** Idle open connections, by gateway. */
  readonly #idle = new Map<Process, Connection[]>();
  /** Gateways that give each request a connection of its own. */
  readonly #apart = new Set<Process>();

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#perSecond = options.perSecond;
    options.recorder.limits.push({ fromMs: 0, perSecond: options.perSecond });
  }

  /** No callback is under way, and no payment is pending. */
  get isQuiet(): boolean {
    return this.#underWay === 0 && this.#ledger.every(({ status }) => status !== "pending");
  }

  set trouble(trouble: "refuses" | "silent" | undefined) {
    this.#trouble = trouble;
  }

  set perSecond(perSecond: number) {
    this.#perSecond = perSecond;
    const { scheduler, recorder } = this.#options;
    recorder.limits.push({ fromMs: scheduler.nowMs, perSecond });
  }

  expect(request: string, orders: Orders): void {
    this.#orders.set(request, { rest: [...orders.turns], orders });
  }

  /** The state of an external_id by the ledger, in the words of the contract. */
  stateOf(externalId: string): string {
    const all = this.#ledger.filter((attempt) => attempt.externalId === externalId);
    const paid = all.filter(({ status }) => status === "success");
    if (paid.some(({ operation, held }) => operation === "confirm" || !held)) return "PAID";
    if (paid.length > 0) return "AUTHORIZED";
    if (all.some(({ status }) => status === "pending")) return "PENDING";
    return all.length > 0 ? "FAILED" : "NOT_FOUND";
  }

  /** The connections of the gateway whose process runs. */
  readonly connections = {
    dispatch: (request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => {
      this.#dispatch(request, handler);
      return true;
    },
    onMixUp: () => {
      const process = currentProcess() as Process;
      this.#apart.add(process);
      for (const connection of this.#idle.get(process) ?? []) connection.isClosed = true;
      this.#idle.delete(process);
    },
    close() {},
    async destroy() {},
  };

  #dispatch(
    { method, path, body }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ) {
    const { scheduler, recorder } = this.#options;
    const process = currentProcess() as Process;
    const call = currentCall() ?? "";
    const isMoney = moneyPaths.has(path);
    let aborted = false;
    let used: Connection | undefined;
    const controller = {
      aborted: false,
      paused: false,
      reason: null,
      rawHeaders: null,
      rawTrailers: null,
      abort() {
        aborted = true;
        if (used) used.isClosed = true;
      },
      pause() {},
      resume() {},
    } as unknown as Dispatcher.DispatchController;
    const later = (ms: number, work: () => void) => scheduler.after(ms, work, process);
    const here = (ms: number, work: () => void) => scheduler.after(ms, () => asNobody(work));
    later(this.#latencyMs(), () => {
      if (this.#trouble === "refuses") {
        const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
        handler.onResponseError?.(null as never, refused);
        return;
      }
      try {
        handler.onRequestStart?.(controller, {});
      } catch {
        return; // Nothing is written.
      }
      const connection = this.#connectionOf(process);
      used = connection;
      const sentMs = scheduler.nowMs;
      recorder.requests.push({ sentMs, replica: process.name });
      const asked = isMoney ? JSON.parse(String(body)) : undefined;
      const name: string = asked?.payload ?? asked?.order?.description ?? "";
      recorder.line(process.name, "service", `${method} ${path}${name && ` for ${name}`}`);
      const asking: Asking = {
        externalId: isMoney ? externalIdOf(asked) : externalIdIn(path),
        hear({ status, body, headers }) {
          recorder.line("service", process.name, `${status} ${told(body)}`);
          handler.onResponseStart?.(controller, status, headers);
          handler.onResponseData?.(controller, Buffer.from(body));
          handler.onResponseEnd?.(controller, {});
        },
      };
      connection.asking = asking;
      const breakOff = () => {
        if (aborted) return;
        connection.isClosed = true;
        handler.onResponseError?.(controller, reset());
      };
      if (this.#trouble === "silent") return;
      const turn = isMoney ? (this.#orders.get(name)?.rest.shift() ?? "pay") : "pay";
      if (turn === "resetBefore") {
        later(this.#latencyMs(), breakOff);
        return;
      }
      if (turn === "silenceBefore") return;
      const lateMs = turn === "payLate" ? this.#options.timeoutMs + this.#between(50, 12_000) : 0;
      here(this.#latencyMs() + lateMs, () => {
        const answer = isMoney
          ? this.#takePost({ path, asked, name, turn, call, sentMs, replica: process.name })
          : this.#takeQuestion(path, String(body ?? ""));
        if (answer === "silence") return;
        if (answer === "reset") {
          later(this.#latencyMs(), breakOff);
          return;
        }
        const limit = recorder.limits.at(-1);
        const { status, body: text, afterMs, about = [] } = answer;
        const message: Message = {
          ...{ status, body: text, headers: this.#limitHeaders(), to: asking },
          onHeard() {
            for (const post of about) post.knownMs ??= scheduler.nowMs;
            if (limit) limit.toldMs ??= scheduler.nowMs;
          },
        };
        later(afterMs + this.#latencyMs(), () => this.#deliver(connection, process, message));
        // Not an Error object: it does not name its payment, so a gateway could not recognize it.
        if (this.#options.answersTwice && isMoney && status === 200 && this.#chance(0.5)) {
          const twiceMs = afterMs + this.#between(4, 60);
          later(twiceMs, () => this.#deliver(connection, process, message));
        }
      });
    });
  }

  #connectionOf(process: Process): Connection {
    return this.#idle.get(process)?.pop() ?? { asking: undefined, isClosed: false };
  }

  /** An answer arrives on a connection. */
  #deliver(connection: Connection, process: Process, message: Message): void {
    const { asking } = connection;
    const { to } = message;
    if (connection.isClosed) return;
    if (!asking) {
      // No request is open on the connection: the gateway closes it.
      connection.isClosed = true;
      const idle = this.#idle.get(process) ?? [];
      this.#idle.set(
        process,
        idle.filter((other) => other !== connection),
      );
      return;
    }
    if (asking === to) message.onHeard();
    // Not delivered: the gateway could not recognize it as the answer to another request.
    else if ([undefined, to.externalId].includes(asking.externalId)) return;
    connection.asking = undefined;
    if (!this.#apart.has(process)) {
      this.#idle.set(process, [...(this.#idle.get(process) ?? []), connection]);
    }
    asking.hear(message);
  }

  #takePost(asked: {
    path: string;
    asked: Asked;
    name: string;
    turn: Turn;
    call: string;
    sentMs: number;
    replica: string;
  }): Answer | "silence" | "reset" {
    const { scheduler, recorder } = this.#options;
    const { turn, call, name, sentMs, replica } = asked;
    const externalId = externalIdOf(asked.asked);
    const operation = operationOf[asked.path] as Attempt["operation"];
    const tooMany = turn === "tooMany" || !this.#admit();
    const post: PostRecord = {
      ...{ n: ++this.#posts, call, request: name, method: methodOf[operation] as string },
      ...{ externalId, replica, sentMs, arrivedMs: scheduler.nowMs, tooMany, charged: false },
    };
    recorder.posts.push(post);
    if (tooMany) return { ...tooManyAnswer, about: [post] };
    const { orders } = this.#orders.get(name) ?? { orders: undefined };
    const held = orders?.held ?? false;

    const before = this.#ledger.filter((attempt) => attempt.externalId === externalId);
    const refused = refusalOf(operation, before);
    if (refused) {
      const about = [
        post,
        ...before.filter(({ status }) => status === "success").map((a) => a.post),
      ];
      return { status: 400, body: refused, afterMs: 1, about };
    }
    if (turn === "ownErrorBefore") return { ...ownError, afterMs: 1 };

    const paymentId =
      operation === "confirm"
        ? (before.find(({ status }) => status === "success")?.paymentId as string)
        : `p${post.n}`;
    post.paymentId = paymentId;
    const attempt: Attempt = {
      ...{ paymentId, externalId, operation, post, held },
      callbacks: orders?.callbacks ?? "soon",
      status: "pending",
    };
    this.#ledger.push(attempt);
    // An earlier attempt cannot be asked for any more, so send the callback that it never got.
    for (const other of before) {
      if (
        other.callbacks === "never" &&
        other.operation === operation &&
        other.status !== "pending"
      ) {
        this.#notify(other, other.status, this.#between(3_000, 15_000));
      }
    }
    const declined = turn === "decline" || turn === "declineAsData" || turn === "pendingThenFail";
    post.charged = !declined;
    const isPending = turn === "pending" || turn === "pendingThenFail";
    if (isPending) {
      if (attempt.callbacks === "twice") this.#notify(attempt, "pending", this.#between(5, 50));
      scheduler.after(this.#between(300, 6_000), () =>
        asNobody(() => this.#end(attempt, declined)),
      );
    } else {
      this.#end(attempt, declined);
    }
    const afterMs = attempt.callbacks === "early" ? this.#between(30, 400) : this.#between(0.5, 20);
    const answer = { status: 200, body: bodyOf(attempt, attempt.status), afterMs, about: [post] };
    switch (turn) {
      case "decline":
        return { ...answer, status: 402, body: declinedBody(attempt, this.#chance(0.5)) };
      case "payThenReset":
        return "reset";
      case "payThenSilence":
      case "payLate":
        return "silence";
      case "payThenHtml":
        return { status: 502, body: "<html>Bad Gateway</html>", afterMs };
      case "payThenHalf":
        return { status: 200, body: answer.body.slice(0, -20), afterMs };
      case "payThenOwnError":
        return { ...ownError, afterMs };
      case "payThenForeign": {
        const other = { ...attempt, externalId: "another", paymentId: "p-another" };
        return { status: 200, body: bodyOf(other, "success"), afterMs };
      }
      case "paySlowly":
        return { ...answer, afterMs: this.#between(300, this.#options.timeoutMs * 1.3) };
      default:
        return answer;
    }
  }

  /** Ends an attempt; at most one payment of an external_id succeeds. */
  #end(attempt: Attempt, fails: boolean): void {
    const isSecond =
      attempt.operation === "payment" &&
      this.#ledger.some(
        (other) =>
          other !== attempt &&
          other.externalId === attempt.externalId &&
          other.operation === "payment" &&
          other.status === "success",
      );
    if (isSecond) attempt.post.charged = false;
    attempt.status = fails || isSecond ? "failure" : "success";
    const { callbacks, status } = attempt;
    switch (callbacks) {
      case "never": {
        const others = this.#ledger.filter(
          ({ externalId, operation }) =>
            externalId === attempt.externalId && operation === attempt.operation,
        );
        if (others.length > 1) this.#notify(attempt, status, this.#between(3_000, 15_000));
        return;
      }
      case "early":
        this.#notify(attempt, status, 0);
        return;
      case "late":
        this.#notify(attempt, status, this.#between(3_000, 15_000));
        return;
      case "twice":
        this.#notify(attempt, status, this.#between(5, 50));
        this.#notify(attempt, status, this.#between(5, 3_000));
        return;
      case "reversed":
        this.#notify(attempt, status, this.#between(5, 50));
        this.#notify(attempt, "pending", this.#between(100, 2_000));
        return;
      case "soon":
        this.#notify(attempt, status, this.#between(5, 50));
    }
  }

  #takeQuestion(path: string, body: string): Answer {
    if (!this.#admit()) return tooManyAnswer;
    if (path.endsWith("/callback/resend")) {
      const { external_id: externalId, operation } = JSON.parse(body);
      const attempt = this.#ledger.findLast(
        (other) => other.externalId === externalId && other.operation === operation,
      );
      if (!attempt) return notFound;
      this.#notify(attempt, attempt.status, this.#between(1, 100));
      return { status: 200, body: "{}", afterMs: 1 };
    }
    const { pathname, searchParams } = new URL(path, "http://service");
    if (pathname.endsWith("/payouts/v1/info")) {
      const externalId = searchParams.get("external_id");
      const payouts = this.#ledger.filter(
        (other) => other.externalId === externalId && other.operation === "payout",
      );
      const attempt = payouts.findLast(({ status }) => status !== "failure") ?? payouts.at(-1);
      if (!attempt) return notFound;
      return {
        status: 200,
        body: bodyOf(attempt, attempt.status),
        afterMs: 1,
        about: [attempt.post],
      };
    }
    return notFound;
  }

  /** Sends a callback until it is answered 200. */
  #notify(attempt: Attempt, status: Status, afterMs: number): void {
    const { scheduler, recorder } = this.#options;
    const id = `${attempt.paymentId} ${attempt.operation} ${status}`;
    const resource = attempt.operation === "payout" ? "payouts" : "payments";
    const body = Buffer.from(bodyOf(attempt, status));
    const record = recorder.callback(id);
    this.#underWay++;
    let [tries, unanswered] = [0, 0];
    const send = () => {
      const targets = this.#options.targets();
      const target = targets[Math.floor(scheduler.random.next() * targets.length)];
      let isOver = false;
      const over = (code: number) => {
        if (isOver) return;
        isOver = true;
        record.answers.push({ atMs: scheduler.nowMs, status: code });
        tries++;
        // Tries without a gateway that is up do not count: it does not give up then.
        if (target) unanswered++;
        if (code === 200 || unanswered > 12) this.#underWay--;
        else scheduler.after(Math.min(300 * 2 ** tries, 5_000), send);
      };
      if (!target) return over(0);
      recorder.line("service", target.process.name, `callback ${id}`);
      // A gateway that dies, or hangs, does not answer.
      scheduler.after(5_000, () => over(0));
      const { process } = target;
      scheduler.after(
        this.#latencyMs(),
        async () => {
          attempt.post.knownMs ??= scheduler.nowMs;
          const code = await target.receive(resource, body, sign(body, password));
          if (process.isDead) return;
          scheduler.after(this.#latencyMs(), () => {
            recorder.line(target.process.name, "service", `${code}`);
            over(code);
          });
        },
        process,
      );
    };
    scheduler.after(afterMs, send);
  }

  #admit(): boolean {
    const { nowMs } = this.#options.scheduler;
    this.#admitted = this.#admitted.filter((atMs) => atMs > nowMs - 1_000);
    if (this.#admitted.length >= this.#perSecond) return false;
    this.#admitted.push(nowMs);
    return true;
  }

  #limitHeaders(): Record<string, string> {
    return {
      "content-type": "application/json",
      "x-ratelimit-limit": `${this.#perSecond}`,
      "x-ratelimit-remaining": `${Math.max(0, this.#perSecond - this.#admitted.length)}`,
      "x-ratelimit-reset": "1",
    };
  }

  #latencyMs(): number {
    return this.#between(0.3, 4);
  }

  #between(least: number, most: number): number {
    return this.#options.scheduler.random.between(least, most);
  }

  #chance(share: number): boolean {
    return this.#options.scheduler.random.chance(share);
  }
}

const operationOf: Readonly<Record<string, Attempt["operation"]>> = {
  "/api/payments/v1/new": "payment",
  "/api/payments/v1/recurrent": "recurrent",
  "/api/payments/v1/confirm": "confirm",
  "/api/payouts/v1/request-payout": "payout",
};
const moneyPaths = new Set(Object.keys(operationOf));

/** The body of a request that moves money. */
interface Asked {
  readonly external_id?: string;
  readonly order?: { readonly external_id: string };
}

function externalIdOf({ external_id, order }: Asked): string {
  return external_id ?? order?.external_id ?? "";
}

/** The external_id that the path of a payout look-up names. */
function externalIdIn(path: string): string | undefined {
  return new URL(path, "http://service").searchParams.get("external_id") ?? undefined;
}

const methodOf: Readonly<Record<string, string>> = {
  payment: "CreatePayment",
  recurrent: "CreateRecurrentPayment",
  confirm: "ConfirmPayment",
  payout: "RequestPayout",
};

function refusalOf(
  operation: Attempt["operation"],
  before: readonly Attempt[],
): string | undefined {
  const paid = before.filter(({ status }) => status === "success");
  if (operation === "payment" && paid.length > 0) {
    return errorBody("transaction_already_paid", paid[0]?.paymentId);
  }
  if (operation !== "confirm") return undefined;
  if (!paid.some(({ held }) => held)) return errorBody("transaction_success_primary_not_found");
  const isDone = before.some(
    ({ operation, status }) => operation === "confirm" && status !== "failure",
  );
  return isDone ? errorBody("action_already_done") : undefined;
}

function errorBody(code: string, paymentId?: string): string {
  return JSON.stringify({ code, type: "invalid_request_error", payment_id: paymentId });
}

function declinedBody({ paymentId }: Attempt, named: boolean): string {
  const code = "insufficient_funds";
  return JSON.stringify({ code, type: "payment_error", ...(named && { payment_id: paymentId }) });
}

const notFound: Answer = { status: 404, body: errorBody("transaction_not_found"), afterMs: 1 };
const tooManyAnswer: Answer = {
  ...{ status: 429, afterMs: 0.5 },
  body: JSON.stringify({ code: "too_many_requests", type: "api_error" }),
};
const ownError: Answer = {
  ...{ status: 500, afterMs: 1 },
  body: JSON.stringify({ code: "internal_error", type: "api_error" }),
};

/** A payment or payout in the form of answers and callbacks. */
function bodyOf({ paymentId, externalId, operation }: Attempt, status: Status): string {
  if (operation === "payout") {
    return JSON.stringify({
      ...{ external_id: externalId, transaction_id: paymentId, status },
      ...{ currency: "UAH", original_amount: "10.00" },
    });
  }
  return JSON.stringify({
    ...{ external_id: externalId, operation, is_success: status === "success" },
    ...(status === "pending" && { action: { type: "redirect", value: "http://3ds" } }),
    details: { payment_id: paymentId, status, amount: 10, currency: "UAH" },
  });
}

function told(body: string): string {
  try {
    const { code, status, details, external_id: about = "" } = JSON.parse(body);
    return `${code ?? `${about} ${details?.status ?? status ?? ""}`}`;
  } catch {
    return "that cannot be read";
  }
}

function reset(): Error {
  return Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
}
