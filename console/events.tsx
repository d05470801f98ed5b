import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { KindName } from "../src/model/kinds.ts";
import type { EventRow, ShownState } from "./event-row.ts";
import { type Feed, maxRows } from "./feed.ts";
import { momentOf, plural, timeOf, words } from "./format.ts";
import { kindNames } from "./kinds.ts";
import { Badge, Panel, Skeleton, textOf } from "./parts.tsx";
import { useStore } from "./store.ts";

/** The payment or payout that a dialog shows; `cursor` is the event whose message is open. */
export interface Subject {
  readonly kind: KindName;
  readonly externalId: string;
  readonly cursor?: string;
}

interface Filter {
  readonly externalId: string;
  readonly kind: KindName | "";
  readonly shownState: ShownState | "";
}

const all: Filter = { externalId: "", kind: "", shownState: "" };

/** Number of rows to draw at first, and to add with each "Show more". */
const pageLength = 100;

/** The live list of events. The operator can filter it, hold it and open an event. */
export function Events({ feed, open }: { feed: Feed; open: (subject: Subject) => void }) {
  const live = useStore(feed.held);
  const connection = useStore(feed.connection);
  const [stopped, setStopped] = useState<typeof live>();
  const [filter, setFilter] = useState(all);
  const [length, setLength] = useState(pageLength);
  const { rows, restarted } = stopped ?? live;
  const shown = useMemo(() => rows.filter((row) => matches(row, filter)), [rows, filter]);
  const missed = stopped ? live.received - stopped.received : 0;
  const isFiltered = Object.values(filter).some((value) => value !== "");
  const isFirst = rows.length === 0 && connection.state === "connecting";

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
      <FilterForm
        filter={filter}
        onChange={(change) => {
          setFilter({ ...filter, ...change });
          setLength(pageLength);
        }}
        onClear={isFiltered ? () => setFilter(all) : undefined}
      />
      {restarted && (
        <p class="note" role="status">
          The log was interrupted or has gone on further than it is kept: older events are not
          shown.
        </p>
      )}
      {isFirst ? (
        <Skeleton lines={6} />
      ) : shown.length === 0 ? (
        <NoEvents filter={isFiltered ? filter : undefined} open={open} />
      ) : (
        <EventList rows={shown.slice(0, length)} open={open} />
      )}
      <footer class="list-foot">
        {shown.length > length && (
          <button type="button" class="small" onClick={() => setLength(length + pageLength)}>
            Show more
          </button>
        )}
        <span class="soft">
          {isFiltered ? `${shown.length} of ${rows.length} match` : plural(rows.length, "event")}
          {rows.length === maxRows && `; the page keeps the newest ${maxRows}`}
        </span>
      </footer>
      <Announcer feed={feed} />
    </Panel>
  );
}

function matches(row: EventRow, { externalId, kind, shownState }: Filter): boolean {
  if (kind !== "" && row.kind !== kind) return false;
  if (shownState !== "" && row.shownState !== shownState) return false;
  return externalId === "" || row.externalId.toLowerCase().includes(externalId.toLowerCase());
}

const choices: readonly ShownState[] = [
  "paid",
  "authorized",
  "failed",
  "cancelled",
  "refunded",
  "partially_refunded",
  "pending",
  "unknown",
  "settled",
  "not_done",
  "needs_operator",
];

function FilterForm(props: {
  filter: Filter;
  onChange: (change: Partial<Filter>) => void;
  onClear: (() => void) | undefined;
}) {
  const { filter, onChange, onClear } = props;
  return (
    <search class="filter">
      <label class="grow">
        <span>External id</span>
        <input
          type="search"
          value={filter.externalId}
          placeholder="order-1"
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => onChange({ externalId: currentTarget.value.trim() })}
        />
      </label>
      <label>
        <span>Kind</span>
        <select
          value={filter.kind}
          onChange={({ currentTarget }) => onChange({ kind: currentTarget.value as KindName | "" })}
        >
          <option value="">all</option>
          <option value="payment">payments</option>
          <option value="payout">payouts</option>
        </select>
      </label>
      <label>
        <span>State</span>
        <select
          value={filter.shownState}
          onChange={({ currentTarget }) =>
            onChange({ shownState: currentTarget.value as ShownState | "" })
          }
        >
          <option value="">all</option>
          {choices.map((shownState) => (
            <option key={shownState} value={shownState}>
              {textOf(shownState)}
            </option>
          ))}
        </select>
      </label>
      {onClear && (
        <button type="button" class="small" onClick={onClear}>
          Clear
        </button>
      )}
    </search>
  );
}

function NoEvents({ filter, open }: { filter: Filter | undefined; open: (s: Subject) => void }) {
  if (!filter) {
    return <p class="empty">No events yet. They show here as they happen.</p>;
  }
  const { externalId, kind } = filter;
  const kinds = kind === "" ? kindNames : [kind];
  return (
    <div class="empty">
      <p>None of the events on this page match.</p>
      {externalId !== "" && (
        <p class="actions">
          {kinds.map((each) => (
            <button
              key={each}
              type="button"
              class="small"
              onClick={() => open({ kind: each, externalId })}
            >
              Look up {each} {externalId}
            </button>
          ))}
        </p>
      )}
    </div>
  );
}

/** The list is one stop for the Tab key; arrow keys, Home and End move between the rows. */
function EventList({ rows, open }: { rows: readonly EventRow[]; open: (s: Subject) => void }) {
  const [current, setCurrent] = useState<string>();
  const list = useRef<HTMLUListElement>(null);
  const stop = rows.some(({ cursor }) => cursor === current) ? current : rows[0]?.cursor;

  function onKeyDown(event: KeyboardEvent): void {
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>("button.row") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[
      event.key
    ];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    buttons[Math.min(Math.max(next, 0), buttons.length - 1)]?.focus();
  }

  return (
    <ul class="rows" ref={list} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <li key={row.cursor}>
          <button
            type="button"
            class="row"
            tabIndex={row.cursor === stop ? 0 : -1}
            onFocus={() => setCurrent(row.cursor)}
            onClick={() => open(row)}
          >
            <time
              dateTime={new Date(row.receivedAtMs).toISOString()}
              title={momentOf(row.receivedAtMs)}
            >
              {timeOf(row.receivedAtMs)}
            </time>
            <Badge shownState={row.shownState} />
            <span class="what">
              <strong>{row.externalId}</strong>
              <span class="soft">{detailsOf(row)}</span>
            </span>
            <span class="amount">{row.amount && `${row.amount} ${row.currency ?? ""}`}</span>
          </button>
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
