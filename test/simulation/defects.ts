import type { kept } from "./kept.ts";

/** A plausible mistake: one place of the code, replaced. */
export interface Defect {
  readonly name: string;
  /** Its path under `src`. */
  readonly file: string;
  /** Text that the file contains once; if a change removes it, the defect must be adapted. */
  readonly line: string;
  readonly instead: string;
  /** The checks that may find it. */
  readonly brokenChecks: readonly string[];
  /**
   * The seed of a history that showed it when this was written, or the name of a kept history. Default:
   * 1.
   */
  readonly shownBy?: number | keyof typeof kept;
}

type Planted = Record<string, Record<string, Omit<Defect, "name" | "file">>>;

/** By their file, and there by their name. */
const defectsIn = (planted: Planted): readonly Defect[] =>
  Object.entries(planted).flatMap(([file, all]) =>
    Object.entries(all).map(([name, defect]) => ({ name, file, ...defect })),
  );

/** Errors that the simulation must find, each by a check that it breaks. */
export const defects = defectsIn({
  "ledger/calls.ts": {
    "the lock is given back when the outcome is unknown": {
      line: 'return state !== "pending" && !needsOperator;',
      instead: 'return state === "running" && !needsOperator;',
      brokenChecks: ["sent while another is open"],
    },
    "a key is free again when the outcome is unknown": {
      line: 'if (key.state === "running") key.state = "unknown";',
      instead: 'if (key.state === "running") draft.value = undefined;',
      brokenChecks: ["key sent twice"],
      shownBy: 29,
    },
    "a call is opened without its lock": {
      line: "holdsLock(call) && Number(",
      instead: 'call.state === "unknown" && holdsLock(call) && Number(',
      brokenChecks: ["sent while another is open"],
    },
    "a lock lasts as long as the lease": {
      line: "Number(call.startedAt) + locksMs > nowMs",
      instead: "Number(call.startedAt) + Math.min(locksMs, call.leaseMs) > nowMs",
      brokenChecks: ["sent while another is open"],
      shownBy: 6,
    },
    "a key's answer is not kept": {
      line: '    key.state = "done";',
      instead: "    draft.value = undefined;",
      brokenChecks: ["key sent twice", "one key, two answers"],
      shownBy: 11,
    },
    "a call that makes a hold is opened without its note": {
      line: "if (call.hold) record.holds = [...record.holds, call.id].slice(-maxHolds);",
      instead: "",
      brokenChecks: ["not what the ledger says", "paid, then not"],
      shownBy: 29,
    },
    "watchers of a call that was told as unknown do not hear of its late end": {
      line: 'if (was === "unknown" && ending.state !== "unknown" && ending.key !== "keep") {',
      instead: "if (false) {",
      brokenChecks: ["published as unknown, and nothing since"],
      shownBy: "a call that never left is freed late",
    },
    "a key that was used is bound to no request": {
      line: "!fingerprints.includes(key.fingerprint)",
      instead: "fingerprints.length < 0",
      brokenChecks: ["told of another payment", "one key, two requests"],
      shownBy: 11,
    },
    "what a callback shows settles no call": {
      line: "const appended = addEntry(change, draft, entry);\n  settleCalls(change, draft);",
      instead: "const appended = addEntry(change, draft, entry);",
      brokenChecks: ["settled late"],
      shownBy: 29,
    },
    "the note of a hold stays when the call was refused": {
      line: 'ending.key !== "keep" && !told) dropHold(record, id);',
      instead:
        'ending.key !== "keep" && !told && !record.holds.includes(id)) record.holds.push(id);',
      brokenChecks: ["not what the ledger says"],
      shownBy: 30,
    },
  },
  "core/money-calls.ts": {
    "an unknown outcome is told as a definite failure": {
      line: "if (!(error instanceof GatewayError) || error.details.outcomeUnknown)",
      instead: "if (!(error instanceof GatewayError))",
      brokenChecks: ["sent while another is open", "charged, told as failed"],
    },
    "a call that was sent is told as cancelled when its caller's deadline passes": {
      line: "return perhapsSent ? notKnownYet(externalId, error) : error;",
      instead: "return perhapsSent && !progress ? notKnownYet(externalId, error) : error;",
      brokenChecks: ["charged, told as failed"],
    },
    "the lease is counted from its answer": {
      line: "return { begun, elapsedMs };",
      instead: "return { begun, elapsedMs: startStopwatch() };",
      brokenChecks: ["charged, told as not done"],
      shownBy: "a gateway stands still for a minute when a call is about to leave",
    },
    "what has stood still for too long is sent all the same": {
      line: 'if (elapsedMs() > sendWithinMs) throw new Error("too late to be sent");',
      instead: "elapsedMs();",
      brokenChecks: ["charged, told as not done"],
      shownBy: "a gateway stands still for a minute when a call is about to leave",
    },
    "a call waits for the store however long its caller waits": {
      line: "return unlessAborted(answer, signal, errorOf);",
      instead: "return answer ?? unlessAborted(answer, signal, errorOf);",
      brokenChecks: ["outlived its deadline"],
    },
    "a key is the same in all accounts": {
      line: "const id = JSON.stringify([account, method, key]);",
      instead: "const id = JSON.stringify([method, key]);",
      brokenChecks: ["refused without a cause"],
      shownBy: 20,
    },
    "a key in use is bound to no request": {
      line: "if (joined && joined.fingerprint !== fingerprint) throw keyReused();",
      instead: "",
      brokenChecks: ["told of another payment", "one key, two requests"],
      shownBy: 74,
    },
    "the time for which the whole machine stood still does not count": {
      line: "return () => Math.max(Date.now() - wallMs, performance.now() - ownMs);",
      instead: "return () => performance.now() - ownMs + 0 * wallMs;",
      brokenChecks: ["charged, told as not done"],
      shownBy: 146,
    },
    "a key keeps the service's request to try later": {
      line: "if (error.details.notAttempted) {",
      instead: "if (!error) {",
      brokenChecks: ["refused without a cause"],
      shownBy: 105,
    },
    "every call with a key is refused": {
      line: "if (call.signal.aborted) throw errorOfAbort(call.signal);\n      const { account } = call.caller;",
      instead: "throw keyReused();\n      const { account } = call.caller;",
      brokenChecks: ["refused without a cause"],
    },
    "the lease of a call is short": {
      line: "const leaseMs = sendWithinMs + timeouts.timeoutMs + graceMs;",
      instead: "const leaseMs = 50;",
      brokenChecks: ["published as unknown without a cause"],
      shownBy: 1713,
    },
  },
  "ledger/entry.ts": {
    "callbacks are deduplicated by payment_id alone": {
      line: "const identity = [kind, subjectId, operation, operationId, status, statusCode];",
      instead: "const identity: unknown[] = [kind, subjectId];",
      brokenChecks: ["acknowledged, not in the log once", "not what the ledger says"],
    },
  },
  "ledger/entries.ts": {
    "callbacks are not deduplicated": {
      line: "if (isRepeat && !changesHold) return",
      instead: "if (!entry.digest && isRepeat && !changesHold) return",
      brokenChecks: ["acknowledged, not in the log once"],
    },
  },
  "ledger/account.ts": {
    "an event is stored without its state": {
      line: "bytes: writeEvent(this.keyring?.events, event, trace)",
      instead: "bytes: writeEvent(this.keyring?.events, { ...event, state: 0 }, trace)",
      brokenChecks: ["shown otherwise than stored"],
    },
  },
  "callbacks/receiver.ts": {
    "a callback is answered 200 though it was not stored": {
      line: 'unavailable: [503, "the callback could not be stored"],',
      instead: 'unavailable: [200, ""],',
      brokenChecks: ["acknowledged, not in the log once"],
      shownBy: 2,
    },
  },
  "ledger/tail.ts": {
    "live events are yielded though the page has told them": {
      line: "if (event.cursor <= this.#position) continue;",
      instead: "",
      brokenChecks: ["shown twice or out of order"],
      shownBy: 80,
    },
    "the live part is attached behind the first page": {
      line: "this.#position = (await this.#log.bounds()).tail;",
      instead:
        "this.#queue.clear(); this.#position = (await this.#log.bounds()).tail; this.#queue.clear();",
      brokenChecks: ["left out"],
      shownBy: "a payment is made while streams begin",
    },
    "live events wait for the next one": {
      line: "      this.#queue.push(event);\n      this.#wake?.();",
      instead: "      this.#queue.push(event);\n      if (this.#queue.length > 1) this.#wake?.();",
      brokenChecks: ["shown late"],
      shownBy: 8,
    },
  },
  "stores/memory/kernel.ts": {
    "a page begins one event behind the cursor": {
      line: "events.slice(from, ",
      instead: "events.slice(from + (after > this.#floor ? 1 : 0), ",
      brokenChecks: ["left out"],
      shownBy: 5,
    },
    "a page begins with the event at the cursor": {
      line: "({ place }) => place > after",
      instead: "({ place }) => place >= after",
      brokenChecks: ["shown twice or out of order"],
    },
  },
  "stores/stored-account.ts": {
    "a page of one payment says that nothing follows": {
      line: "(found.length > limit && ",
      instead: "(topic === undefined && found.length > limit && ",
      brokenChecks: ["left out"],
      shownBy: 255,
    },
    "a page of the account says that nothing follows": {
      line: "(found.length > limit && ",
      instead: "(topic !== undefined && found.length > limit && ",
      brokenChecks: ["left out"],
      shownBy: 109,
    },
    "a commit happens whatever has become of its records": {
      line: "if (now.version !== was) return false;",
      instead: 'if (was === "none") return false;',
      brokenChecks: ["sent while another is open"],
    },
  },
  "ledger/ledger.ts": {
    "the reconciler's lease is over at once, and every gateway reconciles": {
      line: "value: { holder, at: change.now }, keepMs: ttlMs",
      instead: "value: { holder, at: change.now }, keepMs: 0 * ttlMs",
      brokenChecks: ["looked up by two gateways"],
      shownBy: 29,
    },
  },
  "ledger/facts.ts": {
    "a late callback takes its operation back": {
      line: 'replaces: !isLower && (!isOtherEnd || status === "success"),',
      instead: 'replaces: isLower || !isOtherEnd || status === "success",',
      brokenChecks: ["not what the ledger says", "paid, then not", "charged, shown as failed"],
      shownBy: 7,
    },
  },
  "ledger/payment-state.ts": {
    "a later failed attempt hides the success": {
      line: "if (moved.length > 0) return PaymentState.PAID;",
      instead:
        'if (paying.at(-1)?.status === "failure") return PaymentState.FAILED;\n  if (moved.length > 0) return PaymentState.PAID;',
      brokenChecks: ["not what the ledger says", "paid, then not", "charged, shown as failed"],
    },
    "an open call does not show in the state": {
      line: "if (callIsOpen) return PaymentState.UNKNOWN;\n  if (authorized",
      instead: "if (authorized",
      brokenChecks: ["charged, shown as failed"],
    },
  },
  "reconcile/reconciler.ts": {
    "one NOT_FOUND is taken for not done": {
      line: "neverArrived: notFound >= 3 && isLongAgo,",
      instead: "neverArrived: notFound >= 1 && (isLongAgo || true),",
      brokenChecks: ["charged, told as not done", "sent while another is open"],
      shownBy: "a request arrives when the service has denied twice to know it",
    },
    "the reconciler forgets what it could not reach": {
      line: "await ledger.looked(account, intent, { checks, notFound, inMs: restMs });",
      instead: 'await ledger.end(account, intent, { state: "closed", key: "keep" });',
      brokenChecks: [
        "charged, shown as failed",
        "sent while another is open",
        "not what the ledger says",
        "published as unknown, and nothing since",
      ],
      shownBy: 3_015,
    },
    "two answers of NOT_FOUND are taken for not done": {
      line: "notFound >= 3 &&",
      instead: "notFound >= 2 &&",
      brokenChecks: ["charged, told as not done", "sent while another is open"],
      shownBy: "a request arrives when the service has denied twice to know it",
    },
    "look-ups follow each other without a pause": {
      line: "inMs: Math.min(jittered(pauseMs), untilGivenUpMs),",
      instead: "inMs: Math.min(jittered(pauseMs), untilGivenUpMs) / 100,",
      brokenChecks: ["looked up too often"],
      shownBy: 73,
    },
  },
  "ratelimit/local/budget.ts": {
    "the refill is doubled": {
      line: "return (1_000 + margin) * Math.max(1, 1 / (this.#limit * this.#share));",
      instead: "return (500 + margin / 2) * Math.max(1, 1 / (this.#limit * this.#share));",
      brokenChecks: ["over the budget"],
      shownBy: 25,
    },
  },
  "upstream/parse-response.ts": {
    "an answer about another payment is believed": {
      line: 'if (!named || named === externalId) return { kind: "result", result };',
      instead: 'if (named !== "") return { kind: "result", result };',
      brokenChecks: [
        "told as paid, not charged",
        "told of another payment",
        "not what the ledger says",
      ],
      shownBy: 7,
    },
    "an own error of the service is taken for a refusal": {
      line: "if (money && (reading.leavesOpen || !isRejection(upstream))) {",
      instead: "if (money && !isRejection(upstream)) {",
      brokenChecks: ["charged, told as failed", "sent while another is open"],
      shownBy: 7,
    },
  },
  "upstream/create-upstream.ts": {
    "a connection goes on after an answer to another request came by it": {
      line: "connections.onMixUp();",
      instead: "connections.dispatch.name;",
      brokenChecks: ["charged, told as failed", "sent while another is open"],
      shownBy: "answers come twice while payments go out one after another",
    },
  },
  "ledger/outbox.ts": {
    "an ending that could not be written is forgotten": {
      line: "this.#writes.add(write);",
      instead: "this.#writes.size; write;",
      brokenChecks: ["a key's answer is forgotten"],
      shownBy: "a key's answer does not reach the store at once",
    },
  },
  "ledger/fallback.ts": {
    "a call that is settled while the store is read is in neither": {
      line: "const own = new Map([...before, ...now].map((call) => [call.id, call]));",
      instead: "const own = new Map(now.map((call) => [call.id, call])); before.length;",
      brokenChecks: ["charged, shown as failed"],
      shownBy: "a look begins before a callback settles a call whose answer is not stored yet",
    },
  },
  "core/payouts.ts": {
    "a failed payout is told while the store cannot say whether a call is open": {
      line: 'const isOpen = newEntry?.status === "failure";',
      instead: "const isOpen = false;",
      brokenChecks: ["charged, shown as failed"],
      shownBy: "a payout failed, the next one is on its way, and the store is silent",
    },
  },
  "core/money-answer.ts": {
    "a lost call is answered with the failure of an earlier attempt": {
      line: "if (lost && (!told || known?.callIsOpen || known?.isGivenUp)) throw lost;",
      instead: "if (lost && (!told || known?.isGivenUp)) throw lost;",
      brokenChecks: ["charged, told as failed"],
      shownBy: "a payment failed, and the answer to the next call, which waits, is lost",
    },
    "a call waits though nobody asked it to": {
      line: "const { waitUntil: until } = moneyCall.request;",
      instead: "const until = moneyCall.request.waitUntil || WaitUntil.SETTLED;",
      brokenChecks: ["answered late"],
      shownBy: "a confirmation is answered as pending while somebody asks",
    },
    "a deadline that passes during a wait denies the call": {
      line: "if (lost && error instanceof GatewayError) throw notKnownYet(externalId, error);",
      instead: "throw error;",
      brokenChecks: ["charged, told as failed"],
      shownBy: "a gateway stands still until the deadline of a call that waits",
    },
    "a wait without news tells the failure of an earlier attempt": {
      line: 'if (known.current?.status !== "failure" || entry?.status === "failure") return false;',
      instead: "if (known) return false;",
      brokenChecks: ["charged, told as failed"],
      shownBy:
        "a lost hold, of which one confirmation failed and the next one waits while the store is cut",
    },
  },
  "ledger/evidence.ts": {
    "what was taken back is evidence for another payment": {
      line: "find(succeeded) && isKept(known);",
      instead: "find(succeeded);",
      brokenChecks: [
        "sent while another is open",
        "published as unknown, and nothing since",
        "charged, shown as failed",
      ],
      shownBy: "a payment is cancelled, the next one is on its way, and a third is asked for",
    },
    "what was known before a call is evidence for it": {
      line: "return beganAfter(of, state);",
      instead: "return beganAfter(of, state) || true;",
      brokenChecks: [
        "sent while another is open",
        "published as unknown, and nothing since",
        "charged, shown as failed",
      ],
      shownBy: 93,
    },
  },
  "core/wait.ts": {
    "the state behind an answer is asked for however long its caller waits": {
      line: "known = await read(context, about, signal, event);",
      instead: "known = await read(context, about, new AbortController().signal, event);",
      brokenChecks: ["outlived its deadline"],
      shownBy: "a key is answered again by a gateway whose store is silent",
    },
    "a call that waits answers early": {
      line: "if (until !== WaitUntil.ACTION || state !== PaymentState.PENDING) return false;",
      instead: "if (state !== PaymentState.PENDING) return false;",
      brokenChecks: ["a wait that ends early"],
      shownBy: 54,
    },
    "a call that waits hears of nothing": {
      line: "if (await isOver(event)) break;",
      instead: "await isOver(event);",
      brokenChecks: ["a wait that ends late"],
      shownBy: 54,
    },
  },
  "core/watch.ts": {
    "a watch ends with the first final event, though a call is open": {
      line: "if (!isDue || outcomeFlags(await read()).outcomeUnknown) return false;",
      instead: "if (!isDue || (!isEnd && outcomeFlags(await read()).outcomeUnknown)) return false;",
      brokenChecks: ["a watch that ends early"],
      shownBy: 1192,
    },
    "a watch that is to end with its payment goes on": {
      line: "return isEnd || place >= (await read()).cursor;",
      instead: "return isEnd || place > (await read()).cursor;",
      brokenChecks: ["a watch that does not end"],
      shownBy: 42,
    },
    "the current state is pushed once more": {
      line: "push: push && ((event) => isLeftOut(event) || (!end?.mayEndAt(event) && push(event))),",
      instead: "push: push && ((event) => !end?.mayEndAt(event) && push(event)),",
      brokenChecks: ["shown twice or out of order"],
      shownBy: "a payment is made while watches of it begin, whose edges write at once",
    },
  },
  "stores/cursor.ts": {
    "cursors of any length are read": {
      line: "/^([0-9a-f]{18})-([0-9a-f]{8})$/",
      instead: "/^([0-9a-f]+)-([0-9a-f]+)$/",
      brokenChecks: ["no cursor, and not refused"],
      shownBy: 11,
    },
    "a cursor of another account is read": {
      line: 'if (decodeCursor(cursor).epoch !== epoch) throw cursorExpired("it belongs to another log");',
      instead: "decodeCursor(cursor);",
      brokenChecks: ["no cursor, and not refused"],
      shownBy: 93,
    },
  },
  "collections/shared-calls.ts": {
    "who leaves cuts those who share its call": {
      line: "if (--shared.callers > 0) return;",
      instead: "shared.callers--;",
      brokenChecks: ["refused without a cause"],
      shownBy: 19,
    },
  },
  "ledger/listing.ts": {
    "a payment stays in the list of the state that it had": {
      line: "if (before) change.indexes.push(",
      instead: "if (before && index === undefined) change.indexes.push(",
      brokenChecks: ["listed otherwise"],
    },
  },
});

/** Errors that only a gateway with the embedded store can have. */
export const sqliteDefects = defectsIn({
  "stores/sqlite/worker.ts": {
    "what a full disk refused is answered as done": {
      line: '      database.exec("COMMIT");',
      instead:
        '      try {\n database.exec("COMMIT");\n } catch {\n database.exec("ROLLBACK");\n }',
      brokenChecks: ["acknowledged, not in the log once", "shown, not in the log"],
      shownBy: 200,
    },
    "a batch is answered before it is on the disk": {
      line: `      database.exec("BEGIN IMMEDIATE");
      const replies = requests.map(replyTo);
      database.exec("COMMIT");`,
      instead: `      if (database.isTransaction) database.exec("COMMIT");
      database.exec("BEGIN IMMEDIATE");
      const replies = requests.map(replyTo);`,
      brokenChecks: ["acknowledged, not in the log once"],
      shownBy: 7,
    },
  },
  "stores/sqlite/store-thread.ts": {
    "the disk is not asked to keep what it has": {
      line: 'synchronous = "FULL", startWorker',
      instead: 'synchronous = "OFF", startWorker',
      brokenChecks: ["acknowledged, not in the log once"],
      shownBy: 39,
    },
    "the results of a batch are heard in another order": {
      line: "for (const reply of replies) {",
      instead: "for (const reply of replies.toReversed()) {",
      brokenChecks: ["left out", "shown twice or out of order"],
      shownBy: 93,
    },
  },
  "ledger/process-calls.ts": {
    "a process forgets the calls beside one that has ended": {
      line: "if (own.calls.length === 0) this.#all.delete(name);",
      instead: "this.#all.delete(name);",
      brokenChecks: ["charged, shown as failed"],
      shownBy: "a confirmation is refused before the store could hear of the hold's answer",
    },
    "an answer that the disk does not take is forgotten": {
      line: 'else if (ending.state !== "unknown") own.calls =',
      instead: 'if (ending.state !== "unknown") own.calls =',
      brokenChecks: ["charged, shown as failed"],
      shownBy: "a payment is answered, the disk does not take the answer, and it is asked for",
    },
  },
  "ledger/fallback.ts": {
    "a call goes on without the disk beside one that is just beginning": {
      line: "one === name).length > 1) return undefined;",
      instead: "one === name).length > 9) return undefined;",
      brokenChecks: ["sent while another is open"],
      shownBy: "the disk refuses one write and takes the next, while two payouts begin",
    },
  },
});

/** Errors that only a gateway on Redis can have, most of them in scripts. */
export const redisDefects = defectsIn({
  "stores/redis/commit.lua": {
    "the script commits whatever has become of a record": {
      line: "found[n] ~= value",
      instead: "(n > 1 and found[n] ~= value)",
      brokenChecks: ["sent while another is open"],
      shownBy: 12,
    },
    "the script commits whatever the flags say": {
      line: "found[n] ~= value",
      instead: "(n == 1 and found[n] ~= value)",
      brokenChecks: ["acknowledged, not in the log once", "one callback under two cursors"],
      shownBy: 30,
    },
    "an event may be shown as soon as it is stored, whoever holds it": {
      line: "local watermark = awaits and head.watermark or tail",
      instead: "local watermark = tail",
      brokenChecks: ["shown, not in the log"],
      shownBy: "a failover takes an event away that was stored and not held yet",
    },
  },
  "stores/redis/account.ts": {
    "the store forgets what is attached to a record": {
      line: "if (bytes) beside.push(field, placeOf(bufferOf(bytes), args));",
      instead:
        "if (bytes && args.includes(bytes as Buffer)) beside.push(field, placeOf(bytes as Buffer, args));",
      brokenChecks: ["a key's answer is forgotten"],
      shownBy: 13,
    },
  },
  "ledger/account.ts": {
    "a repeated key asks the store twice, and waits twice for its replicas": {
      line: "if (change.isRead && foundMs !== undefined) return",
      instead: "if (change.isRead && foundMs === 0) return",
      brokenChecks: ["a key's answer is forgotten"],
      shownBy: "a key is sent again to another gateway, and replicas lag",
    },
  },
  "stores/redis/read-events.lua": {
    "the page behind a cursor begins with the event at the cursor": {
      line: "low, high = '(' .. id_of(low)",
      instead: "low, high = id_of(low)",
      brokenChecks: ["shown twice or out of order"],
      shownBy: 12,
    },
    "who begins to read misses what others were shown before the watermark was set back": {
      line: "  watermark = shown",
      instead: "",
      brokenChecks: ["left out"],
      shownBy: "a watcher comes back beside another one when a failover has set the watermark back",
    },
  },
  "redis/acknowledged.ts": {
    "a replica that could be promoted need not hold a write": {
      line: "(address) => !holders.includes(address) && !candidates.get(address)?.spared,",
      instead: "() => holders.length > all.size,",
      brokenChecks: ["acknowledged, not in the log once", "shown, not in the log"],
      shownBy: "nothing reaches a replica that takes over",
    },
  },
  "redis/writer.ts": {
    "what too few replicas hold is taken for written": {
      line: "else resolve({ answer, missing });",
      instead: "else resolve({ answer, missing: undefined });",
      brokenChecks: ["acknowledged, not in the log once", "shown, not in the log"],
      shownBy: "nothing reaches a replica that takes over",
    },
  },
  "ratelimit/redis/take-tokens.lua": {
    "a token comes back after half a window": {
      line: "window = 1000 + rules.jitterMs + learned()",
      instead: "window = 500 + rules.jitterMs + learned()",
      brokenChecks: ["over the budget"],
      shownBy: 11,
    },
  },
});

/** @throws Error for a name that no defect has */
export function defectOf(wanted: string): Defect {
  const all = [...defects, ...sqliteDefects, ...redisDefects];
  const found = all.find(({ name }) => name === wanted);
  if (found) return found;
  throw new Error(`no such defect; there are:\n${all.map(({ name }) => name).join("\n")}`);
}
