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
export class World implements Space {
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly ledgers: Ledgers;
  /** The same states in bytes. */
  readonly #a: Uint8Array;
  readonly #b: Uint8Array;
  readonly #scene: Scene;
  readonly #calls: readonly CallOf[];
  readonly #defect: Defect | undefined;
  readonly #lastBegin: number;
  readonly #steps: ReturnType<typeof stepsOf>;
  #emit: (broken: string) => void = () => {};
  #last: [words: string, i: number, name: string] = ["", 0, ""];

  constructor(scene: Scene, defect?: Defect) {
    this.#scene = scene;
    this.#calls = scene.calls;
    this.#defect = defect;
    this.#lastBegin = scene.lastBegin ?? 0;
    this.from = new Int32Array(scene.replicas ? 12 : 8);
    this.to = this.from.slice();
    this.#a = new Uint8Array(this.from.buffer);
    this.#b = new Uint8Array(this.to.buffer);
    this.#steps = stepsOf(scene);
    const { steps } = this.#steps;
    const plant = typeof defect?.plant === "function" ? defect.plant : undefined;
    this.ledgers = new Ledgers(recordKeyOf(scene), this.#calls.length, steps, plant);
  }

  start(): void {
    const { losses: lost = 0, crashes = 0, repeats = 0, silences = 0, cancels = 0 } = this.#scene;
    this.#b.set([lost, crashes, repeats, silences, cancels], losses);
  }

  tell(): string {
    const [words, i, name] = this.#last;
    return words.replace("#", `${i}`) + name;
  }

  next(emit: (broken: string) => void): void {
    this.#emit = emit;
    for (let i = 0; i < this.#calls.length; i++) {
      const [call, at] = [this.#calls[i]!, callAt(i)];
      if (this.#a[at + stage] === Stage.idle) this.#begin(i, call);
      else this.#process(i, this.#isAlone(at));
      if ((this.#a[at + bits]! & sent) !== 0) this.#service(i, call);
      this.#reconcile(i, call);
    }
    this.#tellNews();
    this.#time();
  }

  #begin(i: number, call: CallOf): void {
    const [a, b, at] = [this.#a, this.#b, callAt(i)];
    if (a[tick]! > this.#lastBegin || !this.#isWanted(call)) return;
    const start = (as: number, is: number) => b.set([as, a[tick]!, is], at);
    if (a[store] === Store.away) {
      if (call.key !== undefined) return;
      this.#reset();
      const result = this.#commitOwn(this.#steps.ownBegin[i]!, i);
      if (result?.out === "started") start(Stage.begun, alone);
      this.#send("call # begins", i, "", result?.broken);
      return;
    }
    if (!this.#isFlushed(call)) return;
    const result = this.#commit(this.#steps.begin[i]!, i);
    if (!result) return;
    if (result.out === "keyAnswered") {
      b[at + stage] = Stage.gone;
      this.#send("call # gets the key's answer", i, "", this.#brokenReplay(i, call));
      return;
    }
    if (result.out === "started") {
      // Replicas that are apart from the store do not know of each other.
      const isApart = this.#calls.some(
        ({ replica }, j) => replica !== call.replica && this.#isAlone(callAt(j)),
      );
      start(Stage.begun, isApart ? stored | apart : stored);
      this.#commitOwn(this.#steps.ownAdopt[i]!, i);
    }
    this.#send("call # begins", i, "", result.broken);
    if (result.out !== "started" || a[silences] === 0) return;
    const words = "call # begins, and the store's answer is lost";
    b[at + stage] = Stage.unsure;
    b[silences]!--;
    this.#send(words, i);
    if (a[late] !== 0) return;
    // It is still on its way, decided on what is stored now.
    this.#reset();
    start(Stage.unsure, stored);
    b[silences]!--;
    b[late] = i + 1;
    this.#send(words, i);
  }

  /** The steps of the process of a call that has begun. */
  #process(i: number, mustAdopt: boolean): void {
    const [a, b, at] = [this.#a, this.#b, callAt(i)];
    const isUp = a[store] !== Store.away;
    const [is, what] = [a[at + stage]!, a[at + said]!];
    if (a[late] === i + 1 && isUp) {
      for (const isDone of [false, true]) {
        this.#reset();
        b[late] = 0;
        const result = isDone && this.#run(this.from[ledger]!, this.#steps.begin[i]!);
        if (result) this.to[ledger] = result.id;
        this.#send(
          "the begin of call # reaches the store late",
          i,
          "",
          result ? result.broken : "",
        );
      }
    }
    if (is === Stage.begun && a[tick] === a[at + began]) {
      this.#reset();
      b[at + stage] = Stage.sent;
      b[at + bits]! |= sent;
      this.#send("call # is sent", i, "", this.#brokenSend(i));
    }
    if (isUp && (is === Stage.unsure || (is === Stage.begun && !mustAdopt))) {
      const result = this.#commit(this.#steps.free[i]!, i);
      b[at + stage] = Stage.gone;
      this.#commitOwn(this.#steps.ownForget[i]!, i);
      if (result) this.#send("call # is freed, and not sent", i, "", result.broken);
    }
    if (is === Stage.again || (is === Stage.sent && what !== Said.nothing)) {
      this.#end(i, what, mustAdopt);
      if (is === Stage.sent && isUp && a[silences] !== 0) this.#end(i, what, mustAdopt, true);
    }
    if (is === Stage.sent) this.#end(i, Said.nothing, mustAdopt);
    const isAlive = is === Stage.begun || is === Stage.sent || is === Stage.again;
    if (isAlive && a[crashes] !== 0 && (a[at + bits]! & alone) === 0) {
      this.#reset();
      b[at + stage] = Stage.gone;
      b[crashes]!--;
      this.#send("the process of call # dies", i);
    }
    if (!mustAdopt || !isUp) return;
    for (const isUnsure of a[silences] === 0 ? [false] : [false, true]) {
      const result = this.#commit(this.#steps.adopt[i]!, i);
      if (!result) return;
      if (isUnsure) b[silences]!--;
      else b[at + bits]! |= stored;
      const words = "call #, begun without the store, is adopted";
      this.#send(words, i, isUnsure ? ", and will be again" : "", result.broken);
    }
  }

  /** A call ends with what the service said, or as lost. */
  #end(i: number, what: number, mustAdopt: boolean, isUnsure = false): void {
    const [a, b, at] = [this.#a, this.#b, callAt(i)];
    const isAgain = a[at + stage] === Stage.again;
    const [isAway, isLost] = [a[store] === Store.away, what === Said.nothing];
    if (isAway ? isAgain : !this.#isFlushed(this.#calls[i]!) && !isAgain && !mustAdopt) return;
    this.#reset();
    const result = isAway
      ? this.#commitOwn(this.#steps.ownEnd[i]![what]!, i)
      : this.#commit(this.#steps.end[i]![what]!, i);
    if (!result) return;
    b[at + stage] = isAway || isUnsure ? Stage.again : isLost ? Stage.gone : Stage.over;
    if (isAway) b[at + said] = what;
    else {
      if (isUnsure) b[silences]!--;
      if (isLost) this.#noteApart(i);
      else b[at + bits]! |= answered;
      this.#commitOwn(isLost ? this.#steps.ownEnd[i]![what]! : this.#steps.ownForget[i]!, i);
    }
    const words = isAgain ? "the ending of call # is written again: " : "call # ends: ";
    const unsure = isAway || isUnsure ? ", which the store does not acknowledge" : "";
    const broken = result.broken || this.#brokenEvent(result);
    this.#send(words, i, `${saidNames[what]}${unsure}`, broken);
  }

  /** What the service does with a request that was sent. */
  #service(i: number, call: CallOf): void {
    const [a, b, at] = [this.#a, this.#b, callAt(i)];
    const isConfirm = call.confirms !== undefined;
    const isPaid =
      isPaying(call) && this.#calls.some((one, j) => isPaying(one) && this.#is(j, At.success));
    const arrive = (where: number, what: number) => {
      this.#reset();
      if (a[at + place] === At.nowhere && a[at + stage] === Stage.sent) b[at + said] = what;
      b[at + place] = where;
      // A confirmation that fails is not called back.
      if (where === At.success || (where === At.failure && !isConfirm)) this.#addNews(0, i, where);
      // That it went on may be told behind its refusal.
      if (what === Said.declined && !isConfirm) this.#addNews(0, i, At.pending);
      this.#send("at the service, call # becomes ", i, atNames[where]);
    };
    if (a[at + place] === At.pending) {
      if (!isPaid) arrive(At.success, 0);
      arrive(At.failure, 0);
    }
    if (a[at + place] === At.success && a[cancels] !== 0) {
      this.#reset();
      b[cancels]!--;
      b[at + place] = At.cancelled;
      this.#addNews(0, i, At.cancelled);
      this.#send("the merchant cancels the payment of call #", i);
    }
    if (a[at + place] !== At.nowhere) return;
    if (a[losses] !== 0) {
      this.#reset();
      b[at + place] = At.lost;
      b[losses]!--;
      this.#send("the request of call # is lost", i);
    }
    if (isPaid) arrive(At.refused, Said.paid);
    else if (isConfirm && !this.#mayConfirm(call)) arrive(At.refused, Said.refused);
    else for (const one of call.does) arrive(...doesOf[one]);
  }

  #reconcile(i: number, call: CallOf): void {
    const [a, at] = [this.#a, callAt(i)];
    const known = this.#known.calls[i]!;
    if (!known.open || known.isFlagged || a[store] === Store.away) return;
    if (known.open === "running" && a[tick]! <= a[at + began]!) return;
    const result = this.#commit(this.#steps.look[i]!, -1, 1);
    if (result) {
      this.#noteApart(i);
      const broken = result.broken || this.#brokenEvent(result);
      this.#send("the reconciler looks at call #", i, "", broken);
    }
    if (known.open === "running") return;
    let isKnown = false;
    for (let j = 0; j < this.#calls.length; j++) {
      const other = this.#calls[j]!;
      const where = a[callAt(j) + place]!;
      if (where < At.pending || where > At.cancelled) continue;
      if (where === At.failure && other.confirms !== undefined) continue;
      const [operation] = moneyMethods[other.method].operations;
      if (!isOperationOf(call.method, { operation })) continue;
      isKnown = true;
      // In the end nobody asks any more: what is open then is flagged.
      if (a[tick] === this.#lastTick) continue;
      this.#reset();
      // It is asked for the payment, not for its cancellation.
      const told = where === At.cancelled ? At.success : where;
      this.#addNews(other.method === "RequestPayout" ? 1 : 0, j, told);
      this.#send("the reconciler has the service report call #: ", j, atNames[where]);
    }
    if (isKnown || (a[tick]! < a[at + began]! + 2 && this.#defect?.plant !== "believesNotFound"))
      return;
    const looked = this.#commit(this.#steps.notFound[i]!, -1, 1);
    if (looked) this.#send("the service does not know call #", i, "", looked.broken);
  }

  #tellNews(): void {
    const [a, b, from, to] = [this.#a, this.#b, this.from, this.to];
    for (let bit = 0; a[store] !== Store.away && from[news]! >> bit !== 0; bit++) {
      if ((from[news]! & (1 << bit)) === 0) continue;
      const [j, where] = [
        Math.floor(bit / toldPlaces.length) % 3,
        toldPlaces[bit % toldPlaces.length]!,
      ];
      for (const isAgain of a[repeats] === 0 ? [false] : [false, true]) {
        const result = this.#commit(this.#steps.news[bit]!);
        if (!result) break;
        if (isAgain) b[repeats]!--;
        else to[news]! &= ~(1 << bit);
        for (let i = 0; i < this.#calls.length; i++) {
          if (this.#known.calls[i]!.open !== "running") this.#noteApart(i);
        }
        const words = isAgain
          ? "it is told, and will be again: call # is "
          : "it is told: call # is ";
        this.#send(words, j, atNames[where], result.broken || this.#brokenEvent(result));
      }
      if (a[losses] === 0) continue;
      this.#reset();
      to[news]! &= ~(1 << bit);
      b[losses]!--;
      this.#send("a callback is lost: call # is ", j, atNames[where]);
    }
  }

  #time(): void {
    const [a, b] = [this.#a, this.#b];
    let isLeased = a[tick] === this.#lastTick;
    for (let i = 0; i < this.#calls.length; i++) {
      const at = callAt(i);
      const is = a[at + stage]!;
      const isAlive = is !== Stage.idle && is !== Stage.over && is !== Stage.gone;
      const isOnItsWay = (a[at + bits]! & sent) !== 0 && a[at + place] === At.nowhere;
      // A process is not suspended beyond its lease, and a request arrives within it.
      isLeased ||= (isAlive || isOnItsWay || this.#isAlone(at)) && a[tick]! > a[at + began]!;
    }
    if (!isLeased) {
      this.#reset();
      b[tick]!++;
      this.#send("time goes on", 0);
    }
    const mayGo = this.#scene.replicas && a[store] === Store.up && a[tick]! <= this.#lastBegin;
    if (!mayGo && a[store] !== Store.away) return;
    this.#reset();
    b[store] = mayGo ? Store.away : Store.back;
    if (mayGo) {
      this.to[ledger] = this.#run(this.from[ledger]!, this.#steps.away).id;
      for (const i of this.#calls.keys()) {
        if (a[callAt(i) + stage] === Stage.begun) b[callAt(i) + bits]! |= apart;
      }
    }
    this.#send(mayGo ? "the store goes away" : "the store is back", 0);
  }

  /** Emits the state that a step leads to, unless it is the same. */
  #send(words: string, i: number, name = "", found = ""): void {
    if (this.#scene.cancels) this.#noteSettled();
    const [{ from, to }, broken] = [this, this.#judged(found)];
    let n = broken === "" ? 0 : to.length + 1;
    while (n < to.length && to[n] === from[n]) n++;
    if (n === to.length) return;
    this.#last = [words, i, name];
    this.#emit(broken);
  }

  #reset(): void {
    const { from, to } = this;
    for (let n = 0; n < to.length; n++) to[n] = from[n]!;
  }

  #run(id: number, step: number, since = 0): Result {
    return this.ledgers.run(id, step, this.#a[tick]!, since);
  }

  /**
   * Commits a step of a replica, of a call's process or other.
   * @returns undefined if its copy was old: it decides again
   */
  #commit(step: number, i = -1, replica = this.#calls[i]?.replica ?? 0): Result | undefined {
    const { from, to } = this;
    const since = i < 0 ? 0 : this.#a[callAt(i) + began]!;
    this.#reset();
    let id = from[ledger]!;
    if (this.#scene.replicas && from[copies + replica] !== 0) {
      id = from[copies + replica]! - 1;
      to[copies + replica] = 0;
      if (this.#defect?.plant !== "ignoresVersions") {
        const { broken } = this.#run(id, step, since);
        this.#send("replica # finds that its copy is old", replica, "", broken);
        return undefined;
      }
    }
    const result = this.#run(id, step, since);
    to[ledger] = result.id;
    if (result.id !== id) {
      // What is on its way was decided on another version.
      this.#b[late] = 0;
      const other = copies + 1 - replica;
      if (this.#scene.replicas && from[other] === 0) to[other] = from[ledger]! + 1;
    }
    return result;
  }

  /** A step on the record that a replica has of its own calls. */
  #commitOwn(step: number, i: number): Result | undefined {
    if (!this.#scene.replicas) return undefined;
    const at = own + (this.#calls[i]!.replica ?? 0);
    const result = this.#run(this.to[at]!, step);
    this.to[at] = result.id;
    return result;
  }

  #addNews(source: 0 | 1, i: number, where: number): void {
    this.to[news]! |= 1 << (toldPlaces.length * (3 * source + i) + where - toldPlaces[0]);
  }

  get #lastTick(): number {
    return this.#lastBegin + 3;
  }

  /** What is stored before the step. */
  get #known(): Summary {
    return this.ledgers.summary(this.from[ledger]!);
  }

  #is(i: number, where: number): boolean {
    return this.#a[callAt(i) + place] === where;
  }

  /** Whether the store does not have a call, which began without it. */
  #isAlone(at: number): boolean {
    return (this.#a[at + bits]! & (alone | stored)) === alone;
  }

  /** Whether the service takes a confirmation: the payment is held, and no other one confirms it. */
  #mayConfirm({ confirms }: CallOf): boolean {
    const isOther = (call: CallOf, j: number) =>
      call.confirms === confirms && (this.#is(j, At.pending) || this.#is(j, At.success));
    return this.#is(confirms!, At.success) && !this.#calls.some(isOther);
  }

  /** Whether the store has all that the replica of a call has to write. */
  #isFlushed({ replica }: CallOf): boolean {
    if (!this.#scene.replicas) return true;
    const isLeft = (at: number) => this.#a[at + stage] === Stage.again || this.#isAlone(at);
    return !this.#calls.some((call, i) => call.replica === replica && isLeft(callAt(i)));
  }

  /** What was told of a call that the store does not have may be taken for a lost one's. */
  #noteApart(i: number): void {
    if (!this.#scene.replicas) return;
    const known = this.ledgers.summary(this.to[ledger]!).calls;
    const isTaken = (_: CallOf, j: number) =>
      j !== i && known[j]!.told !== 0 && this.#isAlone(callAt(j));
    if (this.#calls.some(isTaken)) this.#b[callAt(i) + bits]! |= apart;
  }

  /** A call that is no longer open, since a payment stands, is over though it may be made once more. */
  #noteSettled(): void {
    const [before, after] = [this.#known, this.ledgers.summary(this.to[ledger]!)];
    if (before === after || !(before.hasSuccess || after.hasSuccess)) return;
    for (let i = 0; i < this.#calls.length; i++) {
      const isOver = before.calls[i]!.open && !after.calls[i]!.open;
      if (isOver) this.#b[callAt(i) + bits]! |= byAnother;
    }
  }

  /** Whether a call counts as settled by the success of another one: at most one of them succeeds. */
  #isSettled(i: number, state: Uint8Array, { hasSuccess }: Summary): boolean {
    const isByAnother = (state[callAt(i) + bits]! & byAnother) !== 0;
    return this.#calls[i]!.method === "CreatePayment" && (hasSuccess || isByAnother);
  }

  /** Whether the caller of a call makes it now. */
  #isWanted({ afterFailureOf }: CallOf): boolean {
    if (afterFailureOf === undefined) return true;
    const at = callAt(afterFailureOf);
    return this.#a[at + stage] === Stage.over && this.#a[at + place]! >= At.failure;
  }

  broken(): string {
    return this.#judged(this.#broken(this.#b, this.ledgers.summary(this.to[ledger]!)));
  }

  brokenAtEnd(): string {
    return this.#judged(this.#brokenAtEnd(this.#a, this.#known));
  }

  /** Of a world with a defect, only the promise that the defect breaks is judged. */
  #judged(broken: string): string {
    return !this.#defect || broken.startsWith(this.#defect.breaks) ? broken : "";
  }

  #brokenSend(i: number): string {
    const [a, known, call] = [this.#a, this.#known, this.#calls[i]!];
    const isAlone = (a[callAt(i) + bits]! & (alone | apart)) !== 0;
    for (const [j, other] of this.#calls.entries()) {
      const at = callAt(j);
      const is = a[at + bits]!;
      if (j === i || (is & sent) === 0) continue;
      if (call.key !== undefined && call.key === other.key && a[at + said] !== Said.busy) {
        return "a key's request is sent once";
      }
      if (other.method !== call.method || (is & answered) !== 0 || !mayMove(a[at + place]!))
        continue;
      if (known.calls[j]!.told !== 0 || known.calls[j]!.isFlagged) continue;
      if (this.#isSettled(j, a, known)) continue;
      // Replicas apart from the store do not know of each other.
      const isApart = (other.replica ?? 0) !== (call.replica ?? 0);
      if (!isApart && a[at + stage] === Stage.again && a[at + said] !== Said.nothing) continue;
      if ((isApart && (isAlone || (is & stored) === 0)) || (is & apart) !== 0) continue;
      return "nothing is sent while a call of its method has no understood answer";
    }
    return "";
  }

  #brokenReplay(i: number, { key = "" }: CallOf): string {
    const answer = this.#known.answers[key];
    const isAnswer = (j: number) => answer === `${j} ${this.#a[callAt(j) + said]}`;
    const isRight = this.#calls.some((call, j) => j !== i && call.key === key && isAnswer(j));
    return isRight ? "" : "a key's repeat gets the first answer";
  }

  /** What events say of the state, beside what the service knows. */
  #brokenEvent({ saysPaid }: Result): string {
    const known = this.ledgers.summary(this.to[ledger]!);
    return saysPaid && !this.#isPaid(this.#b, known) ? "no event tells as PAID what is not" : "";
  }

  #broken(b: Uint8Array, known: Summary): string {
    const { state } = known;
    const isHeld = state === PaymentState.AUTHORIZED;
    const isShown = isHeld || state === PaymentState.PAID;
    if (state === PaymentState.PAID && !this.#isPaid(b, known)) {
      return "what is not paid is not shown as PAID";
    }
    for (let i = 0; i < this.#calls.length; i++) {
      const { hold, confirms, method } = this.#calls[i]!;
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
      if (this.#isSettled(i, b, known)) continue;
      if (state !== PaymentState.UNKNOWN && state !== PaymentState.PAID) {
        return "while an outcome is open, UNKNOWN is shown";
      }
      // Which of two lost calls an attempt belongs to cannot be told: one of them stays open for both.
      const isDouble = (other: CallSummary, j: number) =>
        j !== i && other.open && other.told !== 0 && this.#calls[j]!.method === method;
      if (known.calls.some(isDouble)) continue;
      if (!open) return "a call that may move money is open";
      if (!call.locks && !call.isFlagged) return "a call of open outcome holds its lock";
      if (open === "unknown" && !call.saysUnknown) return "a loss is published";
    }
    return "";
  }

  #brokenAtEnd(a: Uint8Array, known: Summary): string {
    const { calls, state } = known;
    if (calls.some(({ locks }) => locks)) return "in the end no lock is left";
    if (calls.some(({ open, isFlagged }) => open && !isFlagged)) {
      return "in the end each call is settled or flagged";
    }
    // In this world nobody asks for a call that counted as settled, and its callback was lost; nor for
    // a payment that goes on and that no open call made.
    const isUnasked = ({ told, open }: CallSummary, i: number) =>
      told < At.success &&
      ((a[callAt(i) + bits]! & byAnother) !== 0 || (told === At.pending && !open));
    if (known.isCancelVague || calls.some(isUnasked)) return "";
    const truth = this.#truth(a, known);
    // Of what was refused without a name, only a callback tells.
    const isNameless = (_: unknown, i: number) =>
      !this.#is(i, At.failure) || a[callAt(i) + said] === Said.declined;
    const mayBeUnsaid = truth === PaymentState.FAILED && this.#calls.every(isNameless);
    if (state === truth || (mayBeUnsaid && state === PaymentState.UNSPECIFIED)) return "";
    const isOpen = state === PaymentState.UNKNOWN || state === PaymentState.PENDING;
    if (isOpen && calls.some(({ isFlagged }) => isFlagged)) return "";
    const [is, shown] = [truth, state].map((one) => PaymentStateSchema.value[one]?.localName);
    return `in the end the state is the service's: ${is}, not ${shown}`;
  }

  #truth(a: Uint8Array, known: Summary): PaymentState {
    if (this.#isPaid(a, known)) return PaymentState.PAID;
    if (this.#calls.some((_, i) => stands(a, known, i))) return PaymentState.AUTHORIZED;
    if (known.calls.some(({ told }) => told === At.cancelled)) return PaymentState.CANCELLED;
    const hasFailed = this.#calls.some((_, i) => this.#is(i, At.failure));
    return hasFailed ? PaymentState.FAILED : PaymentState.UNSPECIFIED;
  }

  #isPaid(state: Uint8Array, known: Summary): boolean {
    for (let i = 0; i < this.#calls.length; i++) {
      if (!this.#calls[i]!.hold && stands(state, known, i)) return true;
    }
    return false;
  }
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
