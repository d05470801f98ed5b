import type { Dispatcher } from "undici";
import type { Connections } from "../../src/upstream/connections.ts";
import { sign } from "../../src/wire/signature.ts";
import type { PostRecord, RequestRecord } from "./history.ts";
import { type Account, accounts, merchants, nameIn, partsOf, password } from "./merchant.ts";
import type { Callbacks, Elsewhere, Method, Turn } from "./plan.ts";
import { currentCall, type Recorder } from "./recorder.ts";
import type { Replica } from "./replica.ts";
import { asNobody, currentProcess, type Process, type Scheduler } from "./scheduler.ts";

interface ServiceOptions {
  readonly scheduler: Scheduler;
  readonly recorder: Recorder;
  readonly perSecond: number;
  /** Longest that a gateway waits for an answer, in milliseconds. */
  readonly timeoutMs: number;
  /** The gateways that take callbacks. */
  readonly targets: () => readonly Replica[];
  /**
   * Some answers about a payment are sent twice; the second one arrives on an idle connection, or
   * as the answer to the next request.
   */
  readonly answersTwice: boolean;
}

type Status = "pending" | "success" | "failure";

/** One entry of the ledger: an attempt to move money, or to take it back. */
interface Attempt {
  readonly paymentId: string;
  /** Its name among those of all accounts. */
  readonly externalId: string;
  readonly operation: "payment" | "recurrent" | "confirm" | "payout" | "refund" | "cancel";
  readonly operationId?: string;
  readonly amount: number;
  /** Absent: no gateway asked for it. */
  readonly post?: PostRecord;
  readonly held: boolean;
  readonly callbacks: Callbacks;
  status: Status;
  /** When its end was first acknowledged. */
  toldMs?: number;
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

/** The connections of one gateway process for one account. */
interface Pool {
  idle: Connection[];
  /** Each request gets a connection of its own. */
  isApart: boolean;
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly afterMs: number;
  /** The requests whose outcome it states understandably: its own, or the one that paid before. */
  readonly about?: readonly PostRecord[];
  /** The request that it answers, if that moves money. */
  readonly post?: PostRecord;
}

export type Service = ReturnType<typeof createService>;

/** A payments service with a ledger, a limit of its own, and all kinds of failures to answer. */
export function createService(options: ServiceOptions) {
  const { scheduler, recorder, timeoutMs, targets, answersTwice } = options;
  const { random } = scheduler;
  const ledger: Attempt[] = [];
  const expected = new Map<string, { rest: Turn[]; orders: Orders }>();
  /** When the requests of the last second were admitted, by account. */
  const admittedOf = new Map<Account, number[]>();
  /** Requests that arrive when the service has denied twice to know them. */
  let denied: { readonly what: string; readonly sentMs: number; times: number; arrive(): void }[] =
    [];
  let perSecond = 0;
  let postCount = 0;
  /** Callbacks that are in flight or will be sent again. */
  let underWay = 0;
  /** Payments that no gateway made. */
  let foreign = 0;
  const poolsOf = new Map<Process, Map<Account, Pool>>();

  /** The state of an external_id by the ledger, in the words of the contract. */
  function stateOf(externalId: string): string {
    const all = ledger.filter((attempt) => attempt.externalId === externalId);
    const made = all.filter(({ operation }) => !takingBack.has(operation));
    const paid = standing(externalId);
    const back = all.filter(({ status }) => status === "success");
    const refunded = sumOf(back.filter(({ operation }) => operation === "refund"));
    const moved = paid.filter(({ operation, held }) => operation === "confirm" || !held);
    if (paid.length > 0 && refunded > 0) {
      const confirmed = moved.filter(({ operation }) => operation === "confirm");
      const total = sumOf([confirmed, moved, paid].find((some) => some.length > 0) ?? []);
      return refunded >= total ? "REFUNDED" : "PARTIALLY_REFUNDED";
    }
    if (moved.length > 0) return "PAID";
    if (paid.length > 0) return "AUTHORIZED";
    if (made.some(({ status }) => status === "pending")) return "PENDING";
    if (back.some(({ operation }) => operation === "cancel")) return "CANCELLED";
    return made.length > 0 ? "FAILED" : "NOT_FOUND";
  }

  /** The successes of an external_id that were not cancelled. */
  function standing(externalId: string): Attempt[] {
    const all = ledger.filter((attempt) => attempt.externalId === externalId);
    return notCancelled(all).filter(({ status }) => status === "success");
  }

  /** Something happens without a call of a gateway, if the ledger allows it. */
  function happen(account: Account, externalId: string, what: Elsewhere): void {
    const name = nameIn(account, externalId);
    const later = { callbacks: "soon", held: false, externalId: name } as const;
    if (what === "pay") {
      const operation = externalId.startsWith("out") ? "payout" : "recurrent";
      const paymentId = `e${++foreign}`;
      const made: Attempt = { ...later, paymentId, operation, amount: 10, status: "success" };
      ledger.push(made);
      recorder.elsewhere.push({ atMs: scheduler.nowMs, externalId: name, paymentId, what });
      notify(made, "success", 0);
      return;
    }
    const [paid] = standing(name);
    const isRefunded = ["REFUNDED", "PARTIALLY_REFUNDED"].includes(stateOf(name));
    const isMoved = stateOf(name) === "PAID" || stateOf(name) === "PARTIALLY_REFUNDED";
    // What was refunded is not cancelled, and what is held is not refunded.
    if (!paid || (what === "cancel" ? isRefunded : !isMoved)) return;
    recorder.line("service", "service", `${what} of ${name}`);
    const { paymentId } = paid;
    recorder.elsewhere.push({ atMs: scheduler.nowMs, externalId: name, paymentId, what });
    const operation = what === "cancel" ? "cancel" : "refund";
    const back: Attempt = {
      ...{ ...later, paymentId, operation },
      operationId: `o${++foreign}`,
      amount: what === "refundPart" ? 4 : 10,
      status: what === "refundFails" ? "failure" : "success",
    };
    ledger.push(back);
    const afterMs = random.pick([1, 30, 2_000]);
    notify(back, back.status, afterMs);
    if (random.chance(0.3)) notify(back, back.status, afterMs + random.between(1, 3_000));
  }

  /** Sends callbacks about attempts that no gateway made, all of one external_id or each of one. */
  function burst(account: Account, callbacks: number, externalId: string | undefined): void {
    for (let n = 0; n < callbacks; n++) {
      const attempt: Attempt = {
        paymentId: `b${++foreign}`,
        externalId: nameIn(account, externalId ?? `y-${n}`),
        ...{ operation: "payment", callbacks: "soon", held: false, amount: 10, status: "failure" },
      };
      notify(attempt, "failure", random.between(0, 40));
    }
  }

  /** The connections of one account of the gateway whose process runs. */
  function connectionsOf(account: Account): Connections {
    return {
      dispatch: (request, handler) => {
        dispatch(request, handler);
        return true;
      },
      onMixUp: () => {
        const pool = poolOf(currentProcess() as Process, account);
        for (const connection of pool.idle) connection.isClosed = true;
        Object.assign(pool, { idle: [], isApart: true });
      },
      close() {},
      async destroy() {},
    };
  }

  function poolOf(process: Process, account: Account): Pool {
    const pools = poolsOf.get(process) ?? new Map<Account, Pool>();
    poolsOf.set(process, pools);
    const pool = pools.get(account) ?? { idle: [], isApart: false };
    pools.set(account, pool);
    return pool;
  }

  function dispatch(
    { method, path, body, headers }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ) {
    const process = currentProcess() as Process;
    const account = accountIn(headers);
    const pool = poolOf(process, account);
    const call = currentCall() ?? "";
    const money = moneyCalls[path];
    let aborted = false;
    let used: Connection | undefined;
    const controller = {
      abort() {
        aborted = true;
        if (used) used.isClosed = true;
      },
    } as unknown as Dispatcher.DispatchController;
    const later = (ms: number, work: () => void) => scheduler.after(ms, work, process);
    const here = (ms: number, work: () => void) => scheduler.after(ms, () => asNobody(work));
    later(latencyMs(), () => {
      if (service.trouble === "refuses") {
        const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
        handler.onResponseError?.(null as never, refused);
        return;
      }
      try {
        handler.onRequestStart?.(controller, {});
      } catch {
        return; // Nothing is written.
      }
      const connection = pool.idle.pop() ?? { asking: undefined, isClosed: false };
      used = connection;
      const sentMs = scheduler.nowMs;
      const replica = process.name;
      const asked = money && JSON.parse(String(body));
      const name: string = asked?.payload ?? asked?.order?.description ?? "";
      const request: RequestRecord = {
        ...{ sentMs, replica, account },
        ...(money && { request: name }),
        ...(!money && call === "" && { about: nameIn(account, aboutOf(path, body)) }),
      };
      recorder.requests.push(request);
      recorder.line(replica, "service", `${method} ${path}${name && ` for ${name}`}`);
      const asking: Asking = {
        externalId: money ? externalIdOf(asked) : externalIdIn(path),
        hear({ status, body, headers }) {
          recorder.line("service", replica, `${status} ${told(body)}`);
          handler.onResponseStart?.(controller, status, headers);
          handler.onResponseData?.(controller, Buffer.from(body));
          handler.onResponseEnd?.(controller, {});
        },
      };
      connection.asking = asking;
      const breakOff = () => {
        request.isLost = true;
        if (aborted) return;
        connection.isClosed = true;
        handler.onResponseError?.(controller, reset());
      };
      if (service.trouble === "silent") {
        request.isLost = true;
        return;
      }
      const turn = (money && expected.get(name)?.rest.shift()) ?? "pay";
      if (turn === "resetBefore") {
        later(latencyMs(), breakOff);
        return;
      }
      if (turn === "silenceBefore") {
        request.isLost = true;
        return;
      }
      const lateMs = turn === "payLate" ? timeoutMs + random.between(50, 12_000) : 0;
      const arrive = () => {
        const answer = money
          ? takePost({
              ...{ money, asked, name, turn },
              ...{ call, sentMs, account, replica },
            })
          : takeQuestion(account, path, String(body ?? ""));
        if (answer === "silence") {
          request.isLost = true;
          return;
        }
        if (answer === "reset") {
          later(latencyMs(), breakOff);
          return;
        }
        const limit = recorder.limits.findLast((other) => other.account === account);
        const { status, body: text, afterMs, about = [] } = answer;
        const message: Message = {
          ...{ status, body: text, headers: limitHeaders(account), to: asking },
          onHeard() {
            for (const post of about) post.knownMs ??= scheduler.nowMs;
            if (limit) limit.toldMs ??= scheduler.nowMs;
            if (answer.post) answer.post.answeredMs = scheduler.nowMs;
          },
        };
        later(afterMs + latencyMs(), () => deliver(connection, pool, message));
        // Not an Error object: it does not name its payment, so a gateway could not recognize it.
        if (answersTwice && money && status === 200 && random.chance(0.5)) {
          const twiceMs = afterMs + random.between(4, 60);
          later(twiceMs, () => deliver(connection, pool, message));
        }
      };
      // It may arrive only after the history has ended.
      if (lateMs > 0 || turn === "payOnceDenied") request.isLost = true;
      if (turn === "payOnceDenied") {
        const what = `${money?.operation} ${nameIn(account, externalIdOf(asked))}`;
        arriveOnceDenied(what, sentMs, () => asNobody(arrive));
      } else here(latencyMs() + lateMs, arrive);
    });
  }

  /**
   * The gateway may conclude 20 s after a call that it never arrived, if the service has denied
   * three times to know it: up to then the request may arrive.
   */
  function arriveOnceDenied(what: string, sentMs: number, arrive: () => void): void {
    const one = { what, sentMs, times: 0, arrive: () => {} };
    let isOver = false;
    one.arrive = () => {
      if (isOver) return;
      isOver = true;
      denied = denied.filter((other) => other !== one);
      arrive();
    };
    denied.push(one);
    // It does arrive, even if the service is not asked.
    scheduler.after(45_000, one.arrive);
  }

  /** The service answers that it does not know this. */
  function deny(what: string): void {
    for (const one of denied) {
      if (one.what !== what || ++one.times < 2) continue;
      const afterMs = Math.max(one.sentMs + 19_000 - scheduler.nowMs, random.between(10, 300));
      scheduler.after(afterMs, one.arrive);
    }
  }

  /** An answer arrives on a connection. */
  function deliver(connection: Connection, pool: Pool, message: Message): void {
    const { asking } = connection;
    const { to } = message;
    if (connection.isClosed) return;
    if (!asking) {
      // No request is open on the connection: the gateway closes it.
      connection.isClosed = true;
      pool.idle = pool.idle.filter((other) => other !== connection);
      return;
    }
    if (asking === to) message.onHeard();
    // Not delivered: the gateway could not recognize it as the answer to another request.
    else if ([undefined, to.externalId].includes(asking.externalId)) return;
    connection.asking = undefined;
    if (!pool.isApart) pool.idle.push(connection);
    asking.hear(message);
  }

  function takePost(request: {
    money: MoneyCall;
    asked: Asked;
    name: string;
    turn: Turn;
    call: string;
    sentMs: number;
    account: Account;
    replica: string;
  }): Answer | "silence" | "reset" {
    const { turn, call, name, sentMs, account, replica } = request;
    const { operation, method } = request.money;
    const externalId = nameIn(account, externalIdOf(request.asked));
    const tooMany = turn === "tooMany" || !admit(account);
    const post: PostRecord = {
      ...{ n: ++postCount, call, request: name, method },
      ...{ externalId, replica, sentMs, arrivedMs: scheduler.nowMs, tooMany, charged: false },
    };
    recorder.posts.push(post);
    if (tooMany) return { ...tooManyAnswer, about: [post], post };
    const { orders } = expected.get(name) ?? { orders: undefined };
    const held = orders?.held ?? false;

    const before = ledger.filter((attempt) => attempt.externalId === externalId);
    post.answer = "unclear";
    const refused = refusalOf(operation, before, takesAnother(externalId, sentMs));
    if (refused) {
      const earlier = before.filter(({ status }) => status === "success");
      const about = [post, ...earlier.flatMap((attempt) => attempt.post ?? [])];
      post.answer = "refusal";
      return { status: 400, body: refused, afterMs: 1, about, post };
    }
    if (turn === "ownErrorBefore") return { ...ownError, afterMs: 1 };

    const paymentId =
      operation === "confirm" ? (standing(externalId)[0]?.paymentId as string) : `p${post.n}`;
    post.paymentId = paymentId;
    const attempt: Attempt = {
      ...{ paymentId, externalId, operation, post, held, amount: 10 },
      callbacks: orders?.callbacks ?? "soon",
      status: "pending",
    };
    ledger.push(attempt);
    // An earlier attempt cannot be asked for any more, so send the callback that it never got.
    for (const other of before) {
      if (
        other.callbacks === "never" &&
        other.operation === operation &&
        other.status !== "pending"
      ) {
        notify(other, other.status, random.between(3_000, 15_000));
      }
    }
    const declined = turn === "decline" || turn === "declineAsData" || turn === "pendingThenFail";
    post.charged = !declined;
    const isPending = turn === "pending" || turn === "pendingThenFail";
    if (isPending) {
      if (attempt.callbacks === "twice") notify(attempt, "pending", random.between(5, 50));
      scheduler.after(random.between(300, 6_000), () => asNobody(() => end(attempt, declined)));
    } else {
      end(attempt, declined);
    }
    const afterMs =
      attempt.callbacks === "early" ? random.between(30, 400) : random.between(0.5, 20);
    const body = bodyOf(attempt, attempt.status);
    const answer = { status: 200, body, afterMs, about: [post], post };
    if (!unclearTurns.has(turn)) post.answer = turn === "decline" ? "refusal" : "result";
    switch (turn) {
      case "decline":
        return { ...answer, status: 402, body: declinedBody(attempt, random.chance(0.5)) };
      case "payThenReset":
        return "reset";
      case "payThenSilence":
      case "payLate":
      case "payOnceDenied":
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
        return { ...answer, afterMs: random.between(300, timeoutMs * 1.3) };
      default:
        return answer;
    }
  }

  /** Ends an attempt; at most one payment of an external_id succeeds. */
  function end(attempt: Attempt, fails: boolean): void {
    const isSecond =
      attempt.operation === "payment" &&
      ledger.some(
        (other) =>
          other !== attempt &&
          other.externalId === attempt.externalId &&
          other.operation === "payment" &&
          other.status === "success",
      ) &&
      !takesAnother(attempt.externalId, attempt.post?.sentMs ?? 0);
    if (isSecond && attempt.post) attempt.post.charged = false;
    attempt.status = fails || isSecond ? "failure" : "success";
    const { callbacks, status } = attempt;
    switch (callbacks) {
      case "never": {
        const others = ledger.filter(
          ({ externalId, operation }) =>
            externalId === attempt.externalId && operation === attempt.operation,
        );
        if (others.length > 1) notify(attempt, status, random.between(3_000, 15_000));
        return;
      }
      case "early":
        notify(attempt, status, 0);
        return;
      case "late":
        notify(attempt, status, random.between(3_000, 15_000));
        return;
      case "twice":
        notify(attempt, status, random.between(5, 50));
        notify(attempt, status, random.between(5, 3_000));
        return;
      case "reversed":
        notify(attempt, status, random.between(5, 50));
        notify(attempt, "pending", random.between(100, 2_000));
        return;
      case "soon":
        notify(attempt, status, random.between(5, 50));
    }
  }

  /**
   * Whether all that was paid for an external_id was taken back, so that it may be paid again: by
   * requests that gateways sent when they knew of that.
   */
  function takesAnother(externalId: string, sentMs: number): boolean {
    const back = ledger.filter(
      ({ externalId: other, operation, status }) =>
        other === externalId && takingBack.has(operation) && status === "success",
    );
    const refunded = sumOf(back.filter(({ operation }) => operation === "refund"));
    return (
      back.length > 0 &&
      refunded >= sumOf(standing(externalId)) &&
      back.every(({ toldMs = Infinity }) => toldMs < sentMs - 100)
    );
  }

  function takeQuestion(account: Account, path: string, body: string): Answer {
    if (!admit(account)) return tooManyAnswer;
    const name = nameIn(account, aboutOf(path, body));
    if (path.endsWith("/callback/resend")) {
      const { operation } = JSON.parse(body);
      const attempt = ledger.findLast(
        (other) => other.externalId === name && other.operation === operation,
      );
      if (!attempt) {
        deny(`${operation} ${name}`);
        return notFound;
      }
      notify(attempt, attempt.status, random.between(1, 100));
      return { status: 200, body: "{}", afterMs: 1 };
    }
    const { pathname } = new URL(path, "http://service");
    if (pathname.endsWith("/payouts/v1/info")) {
      const payouts = ledger.filter(
        (other) => other.externalId === name && other.operation === "payout",
      );
      const attempt = payouts.findLast(({ status }) => status !== "failure") ?? payouts.at(-1);
      if (!attempt) {
        deny(`payout ${name}`);
        return notFound;
      }
      const about = attempt.post ? [attempt.post] : [];
      return { status: 200, body: bodyOf(attempt, attempt.status), afterMs: 1, about };
    }
    return notFound;
  }

  /** Sends a callback until it is answered 200. */
  function notify(attempt: Attempt, status: Status, afterMs: number): void {
    const { paymentId, operation, operationId = "", externalId } = attempt;
    const { account } = partsOf(externalId);
    const id = [paymentId, operation, status, operationId].filter(Boolean).join(" ");
    const resource = attempt.operation === "payout" ? "payouts" : "payments";
    const body = Buffer.from(bodyOf(attempt, status));
    const record = recorder.callback(id);
    underWay++;
    let [tries, unanswered] = [0, 0];
    const send = () => {
      const target = random.pick(targets()) as Replica | undefined;
      let isOver = false;
      const over = (code: number) => {
        if (isOver) return;
        isOver = true;
        record.answers.push({ atMs: scheduler.nowMs, status: code });
        tries++;
        // Tries without a gateway that is up do not count: it does not give up then.
        if (target) unanswered++;
        if (code === 200 && status !== "pending") attempt.toldMs ??= scheduler.nowMs;
        if (code === 200 || unanswered > 12) underWay--;
        else scheduler.after(Math.min(300 * 2 ** tries, 5_000), send);
      };
      if (!target) return over(0);
      recorder.line("service", target.process.name, `callback ${id}`);
      // A gateway that dies, or hangs, does not answer.
      scheduler.after(5_000, () => over(0));
      const { process } = target;
      scheduler.after(
        latencyMs(),
        async () => {
          if (attempt.post) attempt.post.knownMs ??= scheduler.nowMs;
          const code = await target.receive(account, resource, body, sign(body, password));
          if (process.isDead) return;
          scheduler.after(latencyMs(), () => {
            recorder.line(target.process.name, "service", `${code}`);
            over(code);
          });
        },
        process,
      );
    };
    scheduler.after(afterMs, send);
  }

  function admit(account: Account): boolean {
    const { nowMs } = scheduler;
    const admitted = (admittedOf.get(account) ?? []).filter((atMs) => atMs > nowMs - 1_000);
    admittedOf.set(account, admitted);
    if (admitted.length >= perSecond) return false;
    admitted.push(nowMs);
    return true;
  }

  function limitHeaders(account: Account): Record<string, string> {
    const admitted = admittedOf.get(account)?.length ?? 0;
    return {
      "content-type": "application/json",
      "x-ratelimit-limit": `${perSecond}`,
      "x-ratelimit-remaining": `${Math.max(0, perSecond - admitted)}`,
      "x-ratelimit-reset": "1",
    };
  }

  function latencyMs(): number {
    return random.between(0.3, 4);
  }

  const service = {
    trouble: undefined as "refuses" | "silent" | undefined,
    /** No callback is under way, and no payment is pending. */
    get isQuiet() {
      const isPending = ledger.some(({ status }) => status === "pending");
      return underWay === 0 && denied.length === 0 && !isPending;
    },
    /** From now on it allows so many requests a second. */
    limit(allowed: number) {
      perSecond = allowed;
      for (const account of accounts) {
        recorder.limits.push({ account, fromMs: scheduler.nowMs, perSecond });
      }
    },
    expect(request: string, orders: Orders) {
      expected.set(request, { rest: [...orders.turns], orders });
    },
    ...{ stateOf, happen, burst, connectionsOf },
  };
  service.limit(options.perSecond);
  return service;
}

const takingBack: ReadonlySet<string> = new Set(["refund", "cancel"]);

/** After these, the request has no answer that a gateway could understand. */
const unclearTurns: ReadonlySet<Turn> = new Set<Turn>([
  ...(["payThenReset", "payThenSilence", "payLate", "payOnceDenied", "payThenHtml"] as const),
  ...(["payThenHalf", "payThenOwnError", "payThenForeign"] as const),
]);

/** Those that were to move money, and were not cancelled. */
function notCancelled(all: readonly Attempt[]): Attempt[] {
  const cancelled = all.flatMap((a) => (a.operation === "cancel" ? [a.paymentId] : []));
  return all.filter(
    ({ operation, paymentId }) => !takingBack.has(operation) && !cancelled.includes(paymentId),
  );
}

function sumOf(attempts: readonly Attempt[]): number {
  return attempts.reduce((sum, { amount }) => sum + amount, 0);
}

/** The account whose credentials a request has. */
function accountIn(headers: Dispatcher.DispatchOptions["headers"]): Account {
  const all = headers as readonly string[];
  const credentials = all[all.indexOf("authorization") + 1] ?? "";
  const account = merchants.find(({ login }) => {
    const text = Buffer.from(`${login}:${password}`).toString("base64");
    return credentials === `Basic ${text}`;
  });
  if (!account) throw new Error(`the credentials of no account: ${credentials}`);
  return account.name;
}

/** The external_id that a look-up is about. */
function aboutOf(path: string, body: unknown): string {
  if (path.endsWith("/callback/resend")) return JSON.parse(String(body)).external_id;
  return externalIdIn(path) ?? "";
}

interface MoneyCall {
  readonly operation: Attempt["operation"];
  readonly method: Method;
}

/** The calls that move money, by their path. */
const moneyCalls: Readonly<Record<string, MoneyCall>> = {
  "/api/payments/v1/new": { operation: "payment", method: "CreatePayment" },
  "/api/payments/v1/recurrent": { operation: "recurrent", method: "CreateRecurrentPayment" },
  "/api/payments/v1/confirm": { operation: "confirm", method: "ConfirmPayment" },
  "/api/payouts/v1/request-payout": { operation: "payout", method: "RequestPayout" },
};

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

function refusalOf(
  operation: Attempt["operation"],
  all: readonly Attempt[],
  takesAnother: boolean,
): string | undefined {
  const before = notCancelled(all);
  const paid = before.filter(({ status }) => status === "success");
  if (operation === "payment" && paid.length > 0 && !takesAnother) {
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
function bodyOf(attempt: Attempt, status: Status): string {
  const { paymentId, operation, operationId, amount } = attempt;
  const { externalId } = partsOf(attempt.externalId);
  if (operation === "payout") {
    return JSON.stringify({
      ...{ external_id: externalId, transaction_id: paymentId, status },
      ...{ currency: "UAH", original_amount: "10.00" },
    });
  }
  return JSON.stringify({
    ...{ external_id: externalId, operation, is_success: status === "success" },
    ...(status === "pending" && { action: { type: "redirect", value: "http://3ds" } }),
    details: { payment_id: paymentId, operation_id: operationId, status, amount, currency: "UAH" },
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
