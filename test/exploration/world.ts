import { PaymentState, PaymentStateSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { isOperationOf } from "../../src/ledger/evidence.ts";
import { moneyMethods } from "../../src/model/money-methods.ts";
import type { Defect } from "./defects.ts";
import type { Space } from "./engine.ts";
import { type CallSummary, Ledgers, type Result, type Summary } from "./ledgers.ts";
import type { CallOf, Does, Scene } from "./scenes.ts";
import { At, recordKeyOf, Said, stepsOf, toldPlaces } from "./steps.ts";

// A state: these bytes, then five for each call, then these words.
const [tick, store, late, losses, crashes, repeats, silences, cancels] = [0, 1, 2, 3, 4, 5, 6, 7];
const callAt = (i: number) => 8 + 5 * i;
const [stage, began, bits, place, said] = [0, 1, 2, 3, 4];
/** With replicas: for each its copy of the ledger, as 1 and its number, and the record of its own calls. */
const [ledger, news, copies, own] = [6, 7, 8, 10];

/** How far the process of a call is. It is `gone` when it died, or has nothing to send or say. */
const Stage = { idle: 0, begun: 1, sent: 2, unsure: 3, over: 4, gone: 5, again: 6 } as const;
/**
 * A call was sent; it was answered; it began without the store; the store has it; replicas apart from
 * the store do not know of each other, or what was told of another one may be taken for its; it was
 * settled by the success of another one.
 */
const [sent, answered, alone, stored, apart, byAnother] = [1, 2, 4, 8, 16, 32];
const Store = { up: 0, away: 1, back: 2 } as const;

const atNames = Object.keys(At);
const saidNames = Object.keys(Said);
const doesOf: Record<Does, readonly [place: number, said: number]> = {
  ...{ pending: [At.pending, Said.pending], success: [At.success, Said.success] },
  ...{ failure: [At.failure, Said.failure], declined: [At.failure, Said.declined] },
  ...{ refused: [At.refused, Said.refused], busy: [At.refused, Said.busy] },
};

/** The states of a scene, the steps between them, and the promises that they keep. */
export function createWorld(scene: Scene, defect?: Defect): Space & { readonly ledgers: Ledgers } {
  const { calls, lastBegin = 0 } = scene;
  const lastTick = lastBegin + 3;
  const from = new Int32Array(scene.replicas ? 12 : 8);
  const to = from.slice();
  /** The same states in bytes. */
  const [a, b] = [new Uint8Array(from.buffer), new Uint8Array(to.buffer)];
  const steps = stepsOf(scene);
  const plant = typeof defect?.plant === "function" ? defect.plant : undefined;
  const ledgers = new Ledgers(recordKeyOf(scene), calls.length, steps.steps, plant);
  /** What is stored before the step. */
  const known = () => ledgers.summary(from[ledger]!);
  let emit: (broken: string) => void = () => {};
  let last: [words: string, i: number, name: string] = ["", 0, ""];

  function beginCall(i: number, call: CallOf): void {
    const at = callAt(i);
    if (a[tick]! > lastBegin || !isWanted(call)) return;
    const start = (as: number, is: number) => b.set([as, a[tick]!, is], at);
    if (a[store] === Store.away) {
      if (call.key !== undefined) return;
      reset();
      const result = commitOwn(steps.ownBegin[i]!, i);
      if (result?.out === "started") start(Stage.begun, alone);
      send("call # begins", i, "", result?.broken);
      return;
    }
    if (!isFlushed(call)) return;
    const result = commit(steps.begin[i]!, i);
    if (!result) return;
    if (result.out === "keyAnswered") {
      b[at + stage] = Stage.gone;
      send("call # gets the key's answer", i, "", brokenReplay(i, call));
      return;
    }
    if (result.out === "started") {
      // Replicas that are apart from the store do not know of each other.
      const isApart = calls.some(
        ({ replica }, j) => replica !== call.replica && isAlone(callAt(j)),
      );
      start(Stage.begun, isApart ? stored | apart : stored);
      commitOwn(steps.ownAdopt[i]!, i);
    }
    send("call # begins", i, "", result.broken);
    if (result.out !== "started" || a[silences] === 0) return;
    const words = "call # begins, and the store's answer is lost";
    b[at + stage] = Stage.unsure;
    b[silences]!--;
    send(words, i);
    if (a[late] !== 0) return;
    // It is still on its way, decided on what is stored now.
    reset();
    start(Stage.unsure, stored);
    b[silences]!--;
    b[late] = i + 1;
    send(words, i);
  }

  /** The steps of the process of a call that has begun. */
  function processCall(i: number, mustAdopt: boolean): void {
    const at = callAt(i);
    const isUp = a[store] !== Store.away;
    const [is, what] = [a[at + stage]!, a[at + said]!];
    if (a[late] === i + 1 && isUp) {
      for (const isDone of [false, true]) {
        reset();
        b[late] = 0;
        const result = isDone && run(from[ledger]!, steps.begin[i]!);
        if (result) to[ledger] = result.id;
        send("the begin of call # reaches the store late", i, "", result ? result.broken : "");
      }
    }
    if (is === Stage.begun && a[tick] === a[at + began]) {
      reset();
      b[at + stage] = Stage.sent;
      b[at + bits]! |= sent;
      send("call # is sent", i, "", brokenSend(i));
    }
    if (isUp && (is === Stage.unsure || (is === Stage.begun && !mustAdopt))) {
      const result = commit(steps.free[i]!, i);
      b[at + stage] = Stage.gone;
      commitOwn(steps.ownForget[i]!, i);
      if (result) send("call # is freed, and not sent", i, "", result.broken);
    }
    if (is === Stage.again || (is === Stage.sent && what !== Said.nothing)) {
      end(i, what, mustAdopt);
      if (is === Stage.sent && isUp && a[silences] !== 0) end(i, what, mustAdopt, true);
    }
    if (is === Stage.sent) end(i, Said.nothing, mustAdopt);
    const isAlive = is === Stage.begun || is === Stage.sent || is === Stage.again;
    if (isAlive && a[crashes] !== 0 && (a[at + bits]! & alone) === 0) {
      reset();
      b[at + stage] = Stage.gone;
      b[crashes]!--;
      send("the process of call # dies", i);
    }
    if (!mustAdopt || !isUp) return;
    for (const isUnsure of a[silences] === 0 ? [false] : [false, true]) {
      const result = commit(steps.adopt[i]!, i);
      if (!result) return;
      if (isUnsure) b[silences]!--;
      else b[at + bits]! |= stored;
      const words = "call #, begun without the store, is adopted";
      send(words, i, isUnsure ? ", and will be again" : "", result.broken);
    }
  }

  /** A call ends with what the service said, or as lost. */
  function end(i: number, what: number, mustAdopt: boolean, isUnsure = false): void {
    const at = callAt(i);
    const isAgain = a[at + stage] === Stage.again;
    const [isAway, isLost] = [a[store] === Store.away, what === Said.nothing];
    if (isAway ? isAgain : !isFlushed(calls[i]!) && !isAgain && !mustAdopt) return;
    reset();
    const result = isAway ? commitOwn(steps.ownEnd[i]![what]!, i) : commit(steps.end[i]![what]!, i);
    if (!result) return;
    b[at + stage] = isAway || isUnsure ? Stage.again : isLost ? Stage.gone : Stage.over;
    if (isAway) b[at + said] = what;
    else {
      if (isUnsure) b[silences]!--;
      if (isLost) noteApart(i);
      else b[at + bits]! |= answered;
      commitOwn(isLost ? steps.ownEnd[i]![what]! : steps.ownForget[i]!, i);
    }
    const words = isAgain ? "the ending of call # is written again: " : "call # ends: ";
    const unsure = isAway || isUnsure ? ", which the store does not acknowledge" : "";
    const broken = result.broken || brokenEvent(result);
    send(words, i, `${saidNames[what]}${unsure}`, broken);
  }

  /** What the service does with a request that was sent. */
  function service(i: number, call: CallOf): void {
    const at = callAt(i);
    const isConfirm = call.confirms !== undefined;
    const isPaid = isPaying(call) && calls.some((one, j) => isPaying(one) && is(j, At.success));
    const arrive = (where: number, what: number) => {
      reset();
      if (a[at + place] === At.nowhere && a[at + stage] === Stage.sent) b[at + said] = what;
      b[at + place] = where;
      // A confirmation that fails is not called back.
      if (where === At.success || (where === At.failure && !isConfirm)) addNews(0, i, where);
      // That it went on may be told behind its refusal.
      if (what === Said.declined && !isConfirm) addNews(0, i, At.pending);
      send("at the service, call # becomes ", i, atNames[where]);
    };
    if (a[at + place] === At.pending) {
      if (!isPaid) arrive(At.success, 0);
      arrive(At.failure, 0);
    }
    if (a[at + place] === At.success && a[cancels] !== 0) {
      reset();
      b[cancels]!--;
      b[at + place] = At.cancelled;
      addNews(0, i, At.cancelled);
      send("the merchant cancels the payment of call #", i);
    }
    if (a[at + place] !== At.nowhere) return;
    if (a[losses] !== 0) {
      reset();
      b[at + place] = At.lost;
      b[losses]!--;
      send("the request of call # is lost", i);
    }
    if (isPaid) arrive(At.refused, Said.paid);
    else if (isConfirm && !mayConfirm(call)) arrive(At.refused, Said.refused);
    else for (const one of call.does) arrive(...doesOf[one]);
  }

  function reconcile(i: number, call: CallOf): void {
    const at = callAt(i);
    const { open, isFlagged } = known().calls[i]!;
    if (!open || isFlagged || a[store] === Store.away) return;
    if (open === "running" && a[tick]! <= a[at + began]!) return;
    const result = commit(steps.look[i]!, -1, 1);
    if (result) {
      noteApart(i);
      const broken = result.broken || brokenEvent(result);
      send("the reconciler looks at call #", i, "", broken);
    }
    if (open === "running") return;
    let isKnown = false;
    for (let j = 0; j < calls.length; j++) {
      const other = calls[j]!;
      const where = a[callAt(j) + place]!;
      if (where < At.pending || where > At.cancelled) continue;
      if (where === At.failure && other.confirms !== undefined) continue;
      const [operation] = moneyMethods[other.method].operations;
      if (!isOperationOf(call.method, { operation })) continue;
      isKnown = true;
      // In the end nobody asks any more: what is open then is flagged.
      if (a[tick] === lastTick) continue;
      reset();
      // It is asked for the payment, not for its cancellation.
      const told = where === At.cancelled ? At.success : where;
      addNews(other.method === "RequestPayout" ? 1 : 0, j, told);
      send("the reconciler has the service report call #: ", j, atNames[where]);
    }
    if (isKnown || (a[tick]! < a[at + began]! + 2 && defect?.plant !== "believesNotFound")) return;
    const looked = commit(steps.notFound[i]!, -1, 1);
    if (looked) send("the service does not know call #", i, "", looked.broken);
  }

  function tellNews(): void {
    for (let bit = 0; a[store] !== Store.away && from[news]! >> bit !== 0; bit++) {
      if ((from[news]! & (1 << bit)) === 0) continue;
      const [j, where] = [
        Math.floor(bit / toldPlaces.length) % 3,
        toldPlaces[bit % toldPlaces.length]!,
      ];
      for (const isAgain of a[repeats] === 0 ? [false] : [false, true]) {
        const result = commit(steps.news[bit]!);
        if (!result) break;
        if (isAgain) b[repeats]!--;
        else to[news]! &= ~(1 << bit);
        for (let i = 0; i < calls.length; i++) {
          if (known().calls[i]!.open !== "running") noteApart(i);
        }
        const words = isAgain
          ? "it is told, and will be again: call # is "
          : "it is told: call # is ";
        send(words, j, atNames[where], result.broken || brokenEvent(result));
      }
      if (a[losses] === 0) continue;
      reset();
      to[news]! &= ~(1 << bit);
      b[losses]!--;
      send("a callback is lost: call # is ", j, atNames[where]);
    }
  }

  function time(): void {
    let isLeased = a[tick] === lastTick;
    for (let i = 0; i < calls.length; i++) {
      const at = callAt(i);
      const is = a[at + stage]!;
      const isAlive = is !== Stage.idle && is !== Stage.over && is !== Stage.gone;
      const isOnItsWay = (a[at + bits]! & sent) !== 0 && a[at + place] === At.nowhere;
      // A process is not suspended beyond its lease, and a request arrives within it.
      isLeased ||= (isAlive || isOnItsWay || isAlone(at)) && a[tick]! > a[at + began]!;
    }
    if (!isLeased) {
      reset();
      b[tick]!++;
      send("time goes on", 0);
    }
    const mayGo = scene.replicas && a[store] === Store.up && a[tick]! <= lastBegin;
    if (!mayGo && a[store] !== Store.away) return;
    reset();
    b[store] = mayGo ? Store.away : Store.back;
    if (mayGo) {
      to[ledger] = run(from[ledger]!, steps.away).id;
      for (const i of calls.keys()) {
        if (a[callAt(i) + stage] === Stage.begun) b[callAt(i) + bits]! |= apart;
      }
    }
    send(mayGo ? "the store goes away" : "the store is back", 0);
  }

  /** Emits the state that a step leads to, unless it is the same. */
  function send(words: string, i: number, name = "", found = ""): void {
    if (scene.cancels) noteSettled();
    const broken = judged(found);
    let n = broken === "" ? 0 : to.length + 1;
    while (n < to.length && to[n] === from[n]) n++;
    if (n === to.length) return;
    last = [words, i, name];
    emit(broken);
  }

  function reset(): void {
    for (let n = 0; n < to.length; n++) to[n] = from[n]!;
  }

  function run(id: number, step: number, since = 0): Result {
    return ledgers.run(id, step, a[tick]!, since);
  }

  /**
   * Commits a step of a replica, of a call's process or other.
   * @returns undefined if its copy was old: it decides again
   */
  function commit(step: number, i = -1, replica = calls[i]?.replica ?? 0): Result | undefined {
    const since = i < 0 ? 0 : a[callAt(i) + began]!;
    reset();
    let id = from[ledger]!;
    if (scene.replicas && from[copies + replica] !== 0) {
      id = from[copies + replica]! - 1;
      to[copies + replica] = 0;
      if (defect?.plant !== "ignoresVersions") {
        const { broken } = run(id, step, since);
        send("replica # finds that its copy is old", replica, "", broken);
        return undefined;
      }
    }
    const result = run(id, step, since);
    to[ledger] = result.id;
    if (result.id !== id) {
      // What is on its way was decided on another version.
      b[late] = 0;
      const other = copies + 1 - replica;
      if (scene.replicas && from[other] === 0) to[other] = from[ledger]! + 1;
    }
    return result;
  }

  /** A step on the record that a replica has of its own calls. */
  function commitOwn(step: number, i: number): Result | undefined {
    if (!scene.replicas) return undefined;
    const at = own + (calls[i]!.replica ?? 0);
    const result = run(to[at]!, step);
    to[at] = result.id;
    return result;
  }

  function addNews(source: 0 | 1, i: number, where: number): void {
    to[news]! |= 1 << (toldPlaces.length * (3 * source + i) + where - toldPlaces[0]);
  }

  function is(i: number, where: number): boolean {
    return a[callAt(i) + place] === where;
  }

  /** Whether the store does not have a call, which began without it. */
  function isAlone(at: number): boolean {
    return (a[at + bits]! & (alone | stored)) === alone;
  }

  /** Whether the service takes a confirmation: the payment is held, and no other one confirms it. */
  function mayConfirm({ confirms }: CallOf): boolean {
    const isOther = (call: CallOf, j: number) =>
      call.confirms === confirms && (is(j, At.pending) || is(j, At.success));
    return is(confirms!, At.success) && !calls.some(isOther);
  }

  /** Whether the store has all that the replica of a call has to write. */
  function isFlushed({ replica }: CallOf): boolean {
    if (!scene.replicas) return true;
    const isLeft = (at: number) => a[at + stage] === Stage.again || isAlone(at);
    return !calls.some((call, i) => call.replica === replica && isLeft(callAt(i)));
  }

  /** What was told of a call that the store does not have may be taken for a lost one's. */
  function noteApart(i: number): void {
    if (!scene.replicas) return;
    const known = ledgers.summary(to[ledger]!).calls;
    const isTaken = (_: CallOf, j: number) => j !== i && known[j]!.told !== 0 && isAlone(callAt(j));
    if (calls.some(isTaken)) b[callAt(i) + bits]! |= apart;
  }

  /** A call that is no longer open, since a payment stands, is over though it may be made once more. */
  function noteSettled(): void {
    const [before, after] = [known(), ledgers.summary(to[ledger]!)];
    if (before === after || !(before.hasSuccess || after.hasSuccess)) return;
    for (let i = 0; i < calls.length; i++) {
      const isOver = before.calls[i]!.open && !after.calls[i]!.open;
      if (isOver) b[callAt(i) + bits]! |= byAnother;
    }
  }

  /** Whether a call counts as settled by the success of another one: at most one of them succeeds. */
  function isSettled(i: number, state: Uint8Array, { hasSuccess }: Summary): boolean {
    const isByAnother = (state[callAt(i) + bits]! & byAnother) !== 0;
    return calls[i]!.method === "CreatePayment" && (hasSuccess || isByAnother);
  }

  /** Whether the caller of a call makes it now. */
  function isWanted({ afterFailureOf }: CallOf): boolean {
    if (afterFailureOf === undefined) return true;
    const at = callAt(afterFailureOf);
    return a[at + stage] === Stage.over && a[at + place]! >= At.failure;
  }

  /** Of a world with a defect, only the promise that the defect breaks is judged. */
  function judged(broken: string): string {
    return !defect || broken.startsWith(defect.breaks) ? broken : "";
  }

  function brokenSend(i: number): string {
    const [before, call] = [known(), calls[i]!];
    const isAlone = (a[callAt(i) + bits]! & (alone | apart)) !== 0;
    for (const [j, other] of calls.entries()) {
      const at = callAt(j);
      const is = a[at + bits]!;
      if (j === i || (is & sent) === 0) continue;
      if (call.key !== undefined && call.key === other.key && a[at + said] !== Said.busy) {
        return "a key's request is sent once";
      }
      if (other.method !== call.method || (is & answered) !== 0 || !mayMove(a[at + place]!))
        continue;
      if (before.calls[j]!.told !== 0 || before.calls[j]!.isFlagged) continue;
      if (isSettled(j, a, before)) continue;
      // Replicas apart from the store do not know of each other.
      const isApart = (other.replica ?? 0) !== (call.replica ?? 0);
      if (!isApart && a[at + stage] === Stage.again && a[at + said] !== Said.nothing) continue;
      if ((isApart && (isAlone || (is & stored) === 0)) || (is & apart) !== 0) continue;
      return "nothing is sent while a call of its method has no understood answer";
    }
    return "";
  }

  function brokenReplay(i: number, { key = "" }: CallOf): string {
    const answer = known().answers[key];
    const isAnswer = (j: number) => answer === `${j} ${a[callAt(j) + said]}`;
    const isRight = calls.some((call, j) => j !== i && call.key === key && isAnswer(j));
    return isRight ? "" : "a key's repeat gets the first answer";
  }

  /** What events say of the state, beside what the service knows. */
  function brokenEvent({ saysPaid }: Result): string {
    const known = ledgers.summary(to[ledger]!);
    return saysPaid && !isPaid(b, known) ? "no event tells as PAID what is not" : "";
  }

  function brokenNow(b: Uint8Array, known: Summary): string {
    const { state } = known;
    const isHeld = state === PaymentState.AUTHORIZED;
    const isShown = isHeld || state === PaymentState.PAID;
    if (state === PaymentState.PAID && !isPaid(b, known)) {
      return "what is not paid is not shown as PAID";
    }
    for (let i = 0; i < calls.length; i++) {
      const { hold, confirms, method } = calls[i]!;
      const at = callAt(i);
      const is = b[at + bits]!;
      const isAnswered = (is & answered) !== 0;
      const call = known.calls[i]!;
      const { told, open } = call;
      if (told === At.success) {
        // An answer behind its lease may find its payment taken for that of a hold.
        const isSure = isAnswered && (is & byAnother) === 0;
        if (isHeld && (confirms !== undefined || (!hold && isSure))) {
          return "what is paid is not shown as AUTHORIZED";
        }
        if (!isShown && !(hold && state === PaymentState.UNKNOWN) && !known.isCancelVague) {
          return "what is paid and known is shown so";
        }
      }
      if ((is & sent) === 0 || !mayMove(b[at + place]!)) continue;
      if (call.saysNotDone) return "what may be charged is not told as not done";
      // From here on: its outcome is open, for all that is known.
      if ((is & (stored | apart)) !== stored || told !== 0 || isAnswered) continue;
      if (isSettled(i, b, known)) continue;
      if (state !== PaymentState.UNKNOWN && state !== PaymentState.PAID) {
        return "while an outcome is open, UNKNOWN is shown";
      }
      // Which of two lost calls an attempt belongs to cannot be told: one of them stays open for both.
      const isDouble = (other: CallSummary, j: number) =>
        j !== i && other.open && other.told !== 0 && calls[j]!.method === method;
      if (known.calls.some(isDouble)) continue;
      if (!open) return "a call that may move money is open";
      if (!call.locks && !call.isFlagged) return "a call of open outcome holds its lock";
      if (open === "unknown" && !call.saysUnknown) return "a loss is published";
    }
    return "";
  }

  function brokenEnd(known: Summary): string {
    const { calls: told, state } = known;
    if (told.some(({ locks }) => locks)) return "in the end no lock is left";
    if (told.some(({ open, isFlagged }) => open && !isFlagged)) {
      return "in the end each call is settled or flagged";
    }
    // In this world nobody asks for a call that counted as settled, and its callback was lost; nor for
    // a payment that goes on and that no open call made.
    const isUnasked = ({ told, open }: CallSummary, i: number) =>
      told < At.success &&
      ((a[callAt(i) + bits]! & byAnother) !== 0 || (told === At.pending && !open));
    if (known.isCancelVague || told.some(isUnasked)) return "";
    const truth = truthOf(known);
    // Of what was refused without a name, only a callback tells.
    const isNameless = (_: unknown, i: number) =>
      !is(i, At.failure) || a[callAt(i) + said] === Said.declined;
    const mayBeUnsaid = truth === PaymentState.FAILED && calls.every(isNameless);
    if (state === truth || (mayBeUnsaid && state === PaymentState.UNSPECIFIED)) return "";
    const isOpen = state === PaymentState.UNKNOWN || state === PaymentState.PENDING;
    if (isOpen && told.some(({ isFlagged }) => isFlagged)) return "";
    const [expected, shown] = [truth, state].map((one) => PaymentStateSchema.value[one]?.localName);
    return `in the end the state is the service's: ${expected}, not ${shown}`;
  }

  function truthOf(known: Summary): PaymentState {
    if (isPaid(a, known)) return PaymentState.PAID;
    if (calls.some((_, i) => stands(a, known, i))) return PaymentState.AUTHORIZED;
    if (known.calls.some(({ told }) => told === At.cancelled)) return PaymentState.CANCELLED;
    const hasFailed = calls.some((_, i) => is(i, At.failure));
    return hasFailed ? PaymentState.FAILED : PaymentState.UNSPECIFIED;
  }

  function isPaid(state: Uint8Array, known: Summary): boolean {
    for (let i = 0; i < calls.length; i++) {
      if (!calls[i]!.hold && stands(state, known, i)) return true;
    }
    return false;
  }

  return {
    ...{ from, to, ledgers },
    start() {
      const { losses: lost = 0, crashes = 0, repeats = 0, silences = 0, cancels = 0 } = scene;
      b.set([lost, crashes, repeats, silences, cancels], losses);
    },
    next(hear) {
      emit = hear;
      for (let i = 0; i < calls.length; i++) {
        const [call, at] = [calls[i]!, callAt(i)];
        if (a[at + stage] === Stage.idle) beginCall(i, call);
        else processCall(i, isAlone(at));
        if ((a[at + bits]! & sent) !== 0) service(i, call);
        reconcile(i, call);
      }
      tellNews();
      time();
    },
    broken: () => judged(brokenNow(b, ledgers.summary(to[ledger]!))),
    brokenAtEnd: () => judged(brokenEnd(known())),
    tell() {
      const [words, i, name] = last;
      return words.replace("#", `${i}`) + name;
    },
  };
}

/** Whether a call's payment succeeded, and was not taken back, as far as the ledger was told. */
function stands(state: Uint8Array, { calls }: Summary, i: number): boolean {
  const where = state[callAt(i) + place]!;
  return where === At.success || (where === At.cancelled && calls[i]!.told !== At.cancelled);
}

/** Whether at most one call of its kind can succeed for an external_id. */
function isPaying({ method }: CallOf): boolean {
  return method === "CreatePayment" || method === "CreateRecurrentPayment";
}

function mayMove(where: number): boolean {
  return where === At.nowhere || where === At.pending || where === At.success;
}
