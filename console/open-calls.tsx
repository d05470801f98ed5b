import type { Calls, OpenCall, ReconcilerSettings } from "../src/admin/console-api.ts";
import { countOf, durationOf, momentOf, plural } from "./format.ts";
import { kindTexts } from "./kinds.ts";
import { Badge, Panel, Problem, Skeleton } from "./parts.tsx";
import { type Polled, useGatewayNow } from "./polled.ts";
import type { Subject } from "./route.ts";

/** Number of calls that are listed at first. */
const shownAtFirst = 5;

/** Calls that are not settled, and what the reconciler does next about each. */
export function OpenCalls(props: {
  calls: Polled<Calls>;
  settings: ReconcilerSettings;
  link: (subject: Subject) => string;
}) {
  const { settings, link } = props;
  const { value, problem } = props.calls;
  const nowMs = useGatewayNow(value);
  const unknown = value?.calls.filter(({ state }) => state === "unknown") ?? [];
  const pending = value?.calls.filter(({ state }) => state === "pending") ?? [];
  const list = (calls: readonly OpenCall[]) => (
    <ul class="cards">
      {calls.map((call) => (
        <OpenCallCard
          key={call.id}
          call={call}
          nowMs={nowMs}
          settings={settings}
          href={link(call)}
        />
      ))}
    </ul>
  );
  return (
    <Panel
      id="calls"
      title="Unknown outcomes"
      aside={
        <span class={`chip ${unknown.length > 0 ? "unknown" : ""}`}>
          {unknown.length || "none"}
        </span>
      }
    >
      {!value && !problem && <Skeleton lines={2} />}
      {value && unknown.length === 0 && (
        <p class="empty">Every call that moved money has its answer.</p>
      )}
      {unknown.length > 0 && list(unknown.slice(0, shownAtFirst))}
      {unknown.length > shownAtFirst && (
        <details class="more">
          <summary>{countOf(unknown.length - shownAtFirst)} more</summary>
          {list(unknown.slice(shownAtFirst))}
        </details>
      )}
      {pending.length > 0 && (
        <details class="more">
          <summary>{countOf(pending.length)} pending, waiting for a callback</summary>
          {list(pending)}
        </details>
      )}
      {value && value.total > value.calls.length && (
        <p class="soft">{`${value.total - value.calls.length} more are not shown.`}</p>
      )}
      {settings.afterMs === undefined && (
        <p class="note">Reconciliation is off (RECONCILE_AFTER=0).</p>
      )}
      <Problem text={problem} old={value !== undefined} />
    </Panel>
  );
}

/** An open call; it links to the page of its payment, if it is not there already. */
export function OpenCallCard(props: {
  call: OpenCall;
  nowMs: number;
  settings: ReconcilerSettings;
  href?: string;
}) {
  const { call, nowMs, settings, href } = props;
  const { externalId, method, state, needsOperator, startedAtMs, checks, notFound } = call;
  return (
    <li class="card">
      <div class="card-head">
        {href ? <a href={href}>{externalId}</a> : <span>{momentOf(startedAtMs)}</span>}
        <Badge shownState={needsOperator ? "needs_operator" : state} />
      </div>
      <p class="soft">
        {[
          method.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase(),
          `${durationOf(nowMs - startedAtMs)} ago`,
          checks > 0 && `looked up ${plural(checks, "time")}`,
          notFound > 0 && `not found ${plural(notFound, "time")}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {href && <p>{nextStep(call, nowMs, settings)}</p>}
    </li>
  );
}

/** What the gateway does next about an open call, and when. */
export function nextStep(
  call: OpenCall,
  nowMs: number,
  { afterMs, giveUpMs }: ReconcilerSettings,
): string {
  const { needsOperator, nextLookMs, kind } = call;
  if (needsOperator) return "Given up: look at the payments service, by hand.";
  if (afterMs === undefined) return "Reconciliation is off: only a callback settles it.";
  const what = kindTexts[kind].lookup;
  const inMs = (nextLookMs ?? nowMs) - nowMs;
  const when = inMs > 500 ? `in ${durationOf(inMs)}` : "now";
  const untilMs = call.startedAtMs + giveUpMs - nowMs;
  return `${what} ${when}; gives up in ${durationOf(untilMs)}.`;
}
