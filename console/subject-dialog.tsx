import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { History, HistoryEvent } from "../src/admin/console-api.ts";
import { type Client, messageOf } from "./client.ts";
import { Dialog } from "./dialog.tsx";
import { type ShownState, shownStateOf } from "./event-row.ts";
import type { Subject } from "./events.tsx";
import type { Feed } from "./feed.ts";
import { momentOf, plural, words } from "./format.ts";
import { kindTexts } from "./kinds.ts";
import { Badge, capital, Skeleton } from "./parts.tsx";
import { useStore } from "./store.ts";

/** The history of one payment or payout: its events with their messages. */
export function SubjectDialog(props: {
  client: Client;
  account: string;
  feed: Feed;
  subject: Subject;
  onClose: () => void;
}) {
  const { client, account, feed, subject, onClose } = props;
  const { kind, externalId, cursor } = subject;
  const { rows } = useStore(feed.held);
  const newest = rows.find((row) => row.kind === kind && row.externalId === externalId)?.cursor;
  const [answer, setAnswer] = useState<{ history?: History; problem?: string }>({});

  useEffect(() => {
    const end = new AbortController();
    const query = { account, kind, external_id: externalId };
    client.get<History>("/api/history", query, end.signal).then(
      (history) => setAnswer({ history }),
      (error) => {
        if (!end.signal.aborted) setAnswer((held) => ({ ...held, problem: messageOf(error) }));
      },
    );
    return () => end.abort();
  }, [client, account, kind, externalId, newest]);

  const { history, problem } = answer;
  return (
    <Dialog class="sheet" label={`${kind} ${externalId}`} onClose={onClose}>
      <header class="sheet-head">
        <div>
          <p class="soft">{capital(kind)}</p>
          <h2>{externalId}</h2>
        </div>
        <form method="dialog">
          <button type="submit" class="small">
            Close
          </button>
        </form>
      </header>
      {problem !== undefined && <p class="problem">{capital(problem)}.</p>}
      {!history && problem === undefined && <Skeleton lines={5} />}
      {history?.events.length === 0 && (
        <p class="empty">Nothing is kept of this {kind}. Perhaps it is another one's id.</p>
      )}
      {history && history.events.length > 0 && (
        <>
          <p class="soft">{capital(plural(history.events.length, "event"))}, newest first</p>
          <ol class="history">
            {history.events.map((event) => (
              <HistoryItem
                key={event.cursor}
                kind={kind}
                event={event}
                open={event.cursor === (cursor ?? history.events[0]?.cursor)}
              />
            ))}
          </ol>
        </>
      )}
    </Dialog>
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

function HistoryItem(props: { kind: Subject["kind"]; event: HistoryEvent; open: boolean }) {
  const { kind, event, open } = props;
  const {
    callOutcome,
    state,
    status,
    statusCode,
    operation,
    subjectId,
    amount,
    currency,
    unrecognized = [],
    message,
  } = event;
  const shownState = callOutcome ? (callOutcome.toLowerCase() as ShownState) : shownStateOf(state);
  return (
    <li>
      <div class="history-head">
        <Badge shownState={shownState} />
        <time dateTime={new Date(event.receivedAtMs).toISOString()}>
          {momentOf(event.receivedAtMs)}
        </time>
      </div>
      <p class="history-source">
        {sources[event.source] ?? event.source}
        {operation && operation !== "payment" && ` · ${operation}`}
        {event.final && " · final"}
      </p>
      {callOutcome && <p>{outcomes[callOutcome] ?? words(callOutcome)}</p>}
      {!callOutcome && (
        <dl class="facts wide">
          {amount && (
            <>
              <dt>amount</dt>
              <dd>{`${amount} ${currency ?? ""}`}</dd>
            </>
          )}
          {status && (
            <>
              <dt>{operation ?? kind}</dt>
              <dd>{status}</dd>
            </>
          )}
          {statusCode && (
            <>
              <dt>status code</dt>
              <dd class="code">{statusCode}</dd>
            </>
          )}
          {unrecognized.map(({ field, value }) => (
            <Fragment key={field}>
              <dt>{field}, not known to the gateway</dt>
              <dd class="code">{value}</dd>
            </Fragment>
          ))}
          {subjectId && (
            <>
              <dt>{kindTexts[kind].subject}</dt>
              <dd class="code">{subjectId}</dd>
            </>
          )}
        </dl>
      )}
      {message && (
        <details open={open}>
          <summary>{event.source === "CALLBACK" ? "Callback" : "Message"}, secrets masked</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must by key */}
          <pre tabIndex={0}>{message}</pre>
        </details>
      )}
    </li>
  );
}
