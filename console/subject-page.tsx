import { Fragment } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import type {
  BudgetStatus,
  History,
  HistoryEvent,
  OperationState,
  PaymentActionResult,
  ReconcilerSettings,
} from "../src/admin/console-api.ts";
import { type Client, messageOf } from "./client.ts";
import { Confirm } from "./confirm.tsx";
import { type ShownState, shownStateOf, webAddress } from "./event-row.ts";
import type { Feed } from "./feed.ts";
import { momentOf, plural, words } from "./format.ts";
import { kindTexts } from "./kinds.ts";
import { nextStep, OpenCallCard } from "./open-calls.tsx";
import { Badge, capital, Panel, Problem, Skeleton } from "./parts.tsx";
import { useGatewayNow, usePolled } from "./polled.ts";
import { hrefOf, type Subject } from "./route.ts";
import { useStore } from "./store.ts";

const historyEveryMs = 3_000;

/** All that is known of one payment or payout, what happens next, and what can be done about it. */
export function SubjectPage(props: {
  client: Client;
  account: string;
  feed: Feed;
  subject: Subject;
  settings: ReconcilerSettings;
  budget: BudgetStatus | undefined;
}) {
  const { client, account, feed, subject, settings, budget } = props;
  const { kind, externalId } = subject;
  const { value, problem, again } = usePolled(
    useCallback(
      (signal: AbortSignal) =>
        client.get<History>("/api/history", { account, kind, external_id: externalId }, signal),
      [client, account, kind, externalId],
    ),
    historyEveryMs,
  );
  const { rows } = useStore(feed.held);
  const newest = rows.find((row) => row.kind === kind && row.externalId === externalId)?.cursor;
  useEffect(() => again(), [again, newest]);
  const nowMs = useGatewayNow(value);

  const { resource } = kindTexts[kind];
  const list = hrefOf(account, { page: "list", kind, state: "", search: "" });
  const first = value?.operations.find(({ amount }) => amount);
  const isKnown = value && value.events.length + value.calls.length > 0;
  const shownState: ShownState = value?.needsOperator
    ? "needs_operator"
    : shownStateOf(value?.state);
  return (
    <>
      <Panel id="subject" title={externalId} above={<a href={list}>{capital(resource)}</a>}>
        {!value && !problem && <Skeleton lines={3} />}
        {value && !isKnown && (
          <p class="empty">Nothing is kept of this {kind}. Perhaps it is another one's id.</p>
        )}
        {isKnown && (
          <>
            <p class="standing">
              <Badge shownState={shownState} />
              {first && <strong>{amountOf(first)}</strong>}
            </p>
            <Next history={value} nowMs={nowMs} settings={settings} kind={kind} />
            <Actions {...{ client, account, subject, budget }} history={value} done={again} />
          </>
        )}
        <Problem text={problem} old={value !== undefined} />
      </Panel>
      {value && value.calls.length > 0 && (
        <Panel id="open-calls" title="Open calls">
          <ul class="cards">
            {value.calls.map((call) => (
              <OpenCallCard key={call.id} call={call} nowMs={nowMs} settings={settings} />
            ))}
          </ul>
        </Panel>
      )}
      {value && value.operations.length > 0 && (
        <Panel id="operations" title="Operations">
          <ul class="rows operations">
            {value.operations.map((operation) => (
              <Operation key={Object.values(operation).slice(0, 4).join(" ")} {...operation} />
            ))}
          </ul>
        </Panel>
      )}
      {value && value.events.length > 0 && (
        <Panel
          id="history"
          title="Events and calls"
          aside={<span class="soft">{plural(value.events.length, "event")}, newest first</span>}
        >
          <ol class="history">
            {value.events.map((event) => (
              <HistoryItem key={event.cursor} kind={kind} event={event} />
            ))}
          </ol>
        </Panel>
      )}
    </>
  );
}

/** What the state means for what comes next, when no call is open. */
const expected: Partial<Record<ShownState, string>> = {
  paid: "Nothing more: it is paid.",
  authorized: "The money is held until the merchant confirms or cancels it.",
  failed: "Nothing more: no money moved. The caller may try again.",
  cancelled: "Nothing more: it was cancelled.",
  refunded: "Nothing more: the money was given back.",
  partially_refunded: "Nothing more: a part was given back.",
  pending: "The service's callback is awaited.",
  init: "No payment of this id is known, only the operations below.",
};

function Next(props: {
  history: History;
  nowMs: number;
  settings: ReconcilerSettings;
  kind: Subject["kind"];
}) {
  const { history, nowMs, settings, kind } = props;
  const action = history.state === "pending" ? actionOf(history.events[0]) : undefined;
  const steps = history.calls.map((call) => nextStep(call, nowMs, settings));
  const told = expected[shownStateOf(history.state)];
  if (steps.length === 0 && told) steps.push(told);
  return (
    <div class="next">
      <h3>What happens next</h3>
      {action && (
        <p>
          The customer has to open{" "}
          <a href={action} target="_blank" rel="noopener noreferrer">
            the page of the bank or the service<span class="unseen"> (new tab)</span> ↗
          </a>
        </p>
      )}
      {steps.map((step) => (
        <p key={step}>{step}</p>
      ))}
      {history.needsOperator && (
        <p>What you find out there comes here by a callback: ask for it, if the {kind} is there.</p>
      )}
    </div>
  );
}

/** The page that the customer has to open, from the service's message. */
function actionOf(event: HistoryEvent | undefined): string | undefined {
  try {
    return webAddress(JSON.parse(event?.message ?? "{}").action?.value);
  } catch {
    return undefined;
  }
}

type Action = "look-up" | "resend-callback";

const actions = {
  "look-up": {
    title: "Look it up now?",
    verb: "Look up now",
    text: "The gateway asks the payments service what became of it, instead of waiting for its next look.",
  },
  "resend-callback": {
    title: "Ask for the callback again?",
    verb: "Ask for the callback again",
    text: "The payments service sends the callback of the latest operation again. What is known already stays as it is.",
  },
} as const;

const results = {
  scheduled: "The gateway looks it up now.",
  asked: "The payments service took the request.",
} as const;

/** What the operator can have asked. Each spends of the rate budget, and is confirmed first. */
function Actions(props: {
  client: Client;
  account: string;
  subject: Subject;
  budget: BudgetStatus | undefined;
  history: History;
  done: () => void;
}) {
  const { client, account, subject, budget, history, done } = props;
  const { kind, externalId } = subject;
  const [asked, setAsked] = useState<Action>();
  const [told, setTold] = useState("");
  const isDue = history.calls.some(({ nextLookMs }) => nextLookMs !== undefined);
  const offered = (["look-up", "resend-callback"] as const).filter((action) =>
    action === "look-up" ? isDue || kind === "payout" : kind === "payment",
  );

  async function run(action: Action): Promise<void> {
    setTold("");
    try {
      const body = { account, kind, externalId };
      const result = await client.post<PaymentActionResult>(`/api/${action}`, body);
      setTold(result.kind === "refused" ? `Refused: ${result.message}.` : results[result.kind]);
    } catch (error) {
      setTold(`${capital(messageOf(error))}.`);
    }
    done();
  }

  return (
    <>
      <p class="actions">
        {offered.map((action) => (
          <button key={action} type="button" class="small" onClick={() => setAsked(action)}>
            {actions[action].verb}
          </button>
        ))}
      </p>
      <p class="result" role="status">
        {told}
      </p>
      {asked && (
        <Confirm
          title={actions[asked].title}
          verb={actions[asked].verb}
          onClose={(confirmed) => {
            setAsked(undefined);
            if (confirmed) void run(asked);
          }}
        >
          <p>{actions[asked].text} No money moves.</p>
          <p>
            It costs a request of the rate budget
            {asked === "look-up" && history.calls.length > 1 && " for each open call"}
            {budget && ` (${budget.remaining} of ${budget.limit} are left now)`}.
          </p>
        </Confirm>
      )}
    </>
  );
}

function Operation(operation: OperationState) {
  const { subjectId, operationId, status, statusCode, atMs } = operation;
  return (
    <li>
      <span>
        <strong>{capital(words(operation.operation))}</strong>{" "}
        {[status, statusCode]
          .filter(Boolean)
          .map((code) => words(code ?? ""))
          .join(": ")}
      </span>
      <span class="amount">{amountOf(operation)}</span>
      <span class="soft code">{[subjectId, operationId].filter(Boolean).join(" · ")}</span>
      <Moment ms={atMs} />
    </li>
  );
}

function amountOf({ amount, currency = "" }: Pick<OperationState, "amount" | "currency">): string {
  return amount ? `${amount} ${currency}` : "";
}

function Moment({ ms }: { ms: number }) {
  return (
    <time class="soft" dateTime={new Date(ms).toISOString()}>
      {momentOf(ms)}
    </time>
  );
}

const sources: Readonly<Record<string, string>> = {
  CALLBACK: "The service's callback",
  RESPONSE: "The service's answer",
  RECONCILIATION: "The gateway looked it up",
};

const outcomes: Readonly<Record<string, string>> = {
  UNKNOWN: "The call was sent, and no answer was understood: the money may have moved.",
  SETTLED: "The outcome is known by now: see the events beside this one.",
  NOT_DONE: "The service, asked several times, does not know of it: nothing moved.",
  NEEDS_OPERATOR: "It could not be found out in time: look at the payments service, by hand.",
};

function HistoryItem(props: { kind: Subject["kind"]; event: HistoryEvent }) {
  const { kind, event } = props;
  const { callOutcome, state, status, statusCode, operation, subjectId, amount, traceId } = event;
  const { unrecognized = [], message } = event;
  const shownState = callOutcome ? (callOutcome.toLowerCase() as ShownState) : shownStateOf(state);
  const facts: [name: string, value: string | undefined][] = [
    ["amount", amount && amountOf(event)],
    [words(operation ?? kind), status && words(status)],
    ["reason", statusCode && words(statusCode)],
    ...unrecognized.map(({ field, value }): [string, string] => [
      `${field}, not known to the gateway`,
      value,
    ]),
    [`${kindTexts[kind].subject} id`, subjectId],
    ["trace id", traceId],
  ];
  return (
    <li>
      <div class="history-head">
        <Badge shownState={shownState} />
        <Moment ms={event.receivedAtMs} />
      </div>
      <p class="history-source">
        {callOutcome ? "The call" : (sources[event.source] ?? event.source)}
        {operation && operation !== "payment" && ` · ${words(operation)}`}
        {event.final && " · final"}
      </p>
      {callOutcome && <p>{outcomes[callOutcome] ?? words(callOutcome)}</p>}
      <dl class="facts wide">
        {facts.map(
          ([name, value]) =>
            value && (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </Fragment>
            ),
        )}
      </dl>
      {message && (
        <details>
          <summary>{event.source === "CALLBACK" ? "Callback" : "Message"}, secrets masked</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must by key */}
          <pre tabIndex={0}>{message}</pre>
        </details>
      )}
    </li>
  );
}
