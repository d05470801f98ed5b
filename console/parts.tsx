import type { ComponentChildren } from "preact";
import type { ShownState } from "./event-row.ts";
import { momentOf, timeOf, words } from "./format.ts";

/** A section of the page with its heading. */
export function Panel(props: {
  id: string;
  title: string;
  /** Above the heading. */
  above?: ComponentChildren;
  /** Beside the heading. */
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}) {
  const { id, title, above, aside, children } = props;
  return (
    <section id={id} class={`panel ${props.class ?? ""}`} aria-labelledby={`${id}-title`}>
      {above && <p class="above">{above}</p>}
      <header class="panel-head">
        <h2 id={`${id}-title`}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

const shownStates: Readonly<Record<ShownState, readonly [glyph: string, text: string]>> = {
  paid: ["✓", "Paid"],
  authorized: ["✓", "Authorized"],
  failed: ["✕", "Failed"],
  cancelled: ["✕", "Cancelled"],
  refunded: ["↩", "Refunded"],
  partially_refunded: ["↩", "Partly refunded"],
  pending: ["…", "Pending"],
  init: ["·", "Begun"],
  unknown: ["?", "Outcome unknown"],
  settled: ["=", "Settled"],
  not_done: ["∅", "Not done"],
  needs_operator: ["!", "Needs you"],
};

/** A state, shown by colour, symbol and word. */
export function Badge({ shownState }: { shownState: ShownState }) {
  const [glyph, text] = glyphAndTextOf(shownState);
  return (
    <span class={`badge ${shownState}`}>
      <span aria-hidden="true">{glyph}</span> {text}
    </span>
  );
}

/** The page may be of an older release than the gateway that answers it. */
function glyphAndTextOf(shownState: ShownState): readonly [glyph: string, text: string] {
  return shownStates[shownState] ?? ["·", capital(words(shownState))];
}

export function textOf(shownState: ShownState): string {
  return glyphAndTextOf(shownState)[1].toLowerCase();
}

/** A payment, a payout or an event in a list, which links to the page of its subject. */
export function Row(props: {
  href: string;
  atMs: number;
  shownState: ShownState;
  title: string;
  details: string;
  amount: string | undefined;
  tabIndex?: number;
  onFocus?: () => void;
}) {
  const { atMs, shownState, title, details, amount, ...link } = props;
  return (
    <a class="row" {...link}>
      <time dateTime={new Date(atMs).toISOString()} title={momentOf(atMs)}>
        {timeOf(atMs)}
      </time>
      <Badge shownState={shownState} />
      <span class="what">
        <strong>{title}</strong>
        <span class="soft">{details}</span>
      </span>
      <span class="amount">{amount}</span>
    </a>
  );
}

/** Why the data shown may be out of date (`old`), or is missing. */
export function Problem({ text, old = false }: { text: string | undefined; old?: boolean }) {
  if (text === undefined) return null;
  return (
    <p class="problem" role="status">
      {old ? `Not up to date: ${text}. Trying again.` : `${capital(text)}. Trying again.`}
    </p>
  );
}

export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

export function Skeleton({ lines }: { lines: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} />
      ))}
    </div>
  );
}
