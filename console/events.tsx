import { useEffect, useRef, useState } from "preact/hooks";
import type { EventRow } from "./event-row.ts";
import { type Feed, maxRows } from "./feed.ts";
import { plural, words } from "./format.ts";
import { Panel, Row, Skeleton, textOf } from "./parts.tsx";
import { hrefOf } from "./route.ts";
import { useStore } from "./store.ts";

/** Number of rows to draw at first, and to add with each "Show more". */
const pageLength = 30;

/** The live list of events. The operator can hold it, and open an event's payment. */
export function Events({ feed, account }: { feed: Feed; account: string }) {
  const live = useStore(feed.held);
  const connection = useStore(feed.connection);
  const [stopped, setStopped] = useState<typeof live>();
  const [length, setLength] = useState(pageLength);
  const { rows, restarted } = stopped ?? live;
  const missed = stopped ? live.received - stopped.received : 0;

  return (
    <Panel
      id="events"
      title="Events"
      class="events"
      aside={
        <button
          type="button"
          class="small"
          aria-pressed={stopped !== undefined}
          onClick={() => setStopped(stopped ? undefined : live)}
        >
          {stopped ? `Go on${missed > 0 ? ` (${missed} new)` : ""}` : "Hold"}
        </button>
      }
    >
      {restarted && (
        <p class="note" role="status">
          The log was interrupted or has gone on further than it is kept: older events are not
          shown.
        </p>
      )}
      {rows.length > 0 ? (
        <EventList rows={rows.slice(0, length)} account={account} />
      ) : connection.state === "connecting" ? (
        <Skeleton lines={6} />
      ) : (
        <p class="empty">No events yet. They show here as they happen.</p>
      )}
      <footer class="list-foot">
        {rows.length > length && (
          <button type="button" class="small" onClick={() => setLength(length + pageLength)}>
            Show more
          </button>
        )}
        <span class="soft">
          {plural(rows.length, "event")}
          {rows.length === maxRows && `; the page keeps the newest ${maxRows}`}
        </span>
      </footer>
      <Announcer feed={feed} />
    </Panel>
  );
}

/** The list is one stop for the Tab key; arrow keys, Home and End move between the rows. */
function EventList({ rows, account }: { rows: readonly EventRow[]; account: string }) {
  const [current, setCurrent] = useState<string>();
  const list = useRef<HTMLUListElement>(null);
  const stop = rows.some(({ cursor }) => cursor === current) ? current : rows[0]?.cursor;

  function onKeyDown(event: KeyboardEvent): void {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("a.row") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    links[Math.min(Math.max(next, 0), links.length - 1)]?.focus();
  }

  return (
    <ul class="rows" ref={list} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <li key={row.cursor}>
          <Row
            href={hrefOf(account, { page: "subject", kind: row.kind, externalId: row.externalId })}
            atMs={row.receivedAtMs}
            shownState={row.shownState}
            title={row.externalId}
            details={detailsOf(row)}
            amount={row.amount && `${row.amount} ${row.currency ?? ""}`}
            tabIndex={row.cursor === stop ? 0 : -1}
            onFocus={() => setCurrent(row.cursor)}
          />
        </li>
      ))}
    </ul>
  );
}

const sources: Readonly<Record<string, string>> = {
  CALLBACK: "by callback",
  RESPONSE: "by answer",
  RECONCILIATION: "looked up",
};

function detailsOf({ kind, operation, statusCode, source, unrecognized }: EventRow): string {
  const what = kind === "payment" && operation && operation !== "payment" ? operation : kind;
  const code = statusCode && !plainCodes.has(statusCode) ? words(statusCode) : undefined;
  return [what, ...unrecognized, code, sources[source] ?? source.toLowerCase()]
    .filter(Boolean)
    .join(" · ");
}

/** Status codes that add nothing to the state. */
const plainCodes = new Set(["transaction_successful", "pending"]);

const announceEveryMs = 5_000;

/** Announces new events to screen readers, in one short text every 5 s at most. */
function Announcer({ feed }: { feed: Feed }) {
  const [text, setText] = useState("");
  useEffect(() => {
    let told = feed.held.value.received;
    const timer = setInterval(() => {
      const { received, rows } = feed.held.value;
      const [newest] = rows;
      if (received > told && newest) {
        const { kind, externalId, shownState } = newest;
        const news = `${kind} ${externalId}, ${textOf(shownState)}`;
        setText(`${plural(received - told, "new event")}: ${news}`);
      }
      told = received;
    }, announceEveryMs);
    return () => clearInterval(timer);
  }, [feed]);
  return (
    <p class="unseen" aria-live="polite">
      {text}
    </p>
  );
}
