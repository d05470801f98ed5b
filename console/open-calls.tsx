import type {
  Calls,
  OpenCall,
  ReconciledStatus,
  ReconcilerSettings,
} from "../src/admin/console-api.ts";
import type { Subject } from "./events.tsx";
import { countOf, durationOf, plural, words } from "./format.ts";
import { kindTexts } from "./kinds.ts";
import { Badge, Panel, Problem, Skeleton } from "./parts.tsx";
import { type Polled, useNow } from "./polled.ts";

/** Calls that are not settled, and what the reconciler does next about each. */
export function OpenCalls(props: {
  calls: Polled<Calls>;
  settings: ReconcilerSettings;
  reconciled: ReconciledStatus | undefined;
  open: (subject: Subject) => void;
}) {
  const { settings, reconciled, open } = props;
  const { value, problem } = props.calls;
  const now = useNow();
  // Ages are measured by the gateway's clock, since the browser's clock may differ.
  const lagMs = value ? now - value.nowMs : 0;
  const unknown = value?.calls.filter(({ state }) => state === "unknown") ?? [];
  const pending = value?.calls.filter(({ state }) => state === "pending") ?? [];
  const list = (calls: readonly OpenCall[]) => (
    <ul class="cards">
      {calls.map((call) => (
        <OpenCallCard
          key={call.id}
          call={call}
          nowMs={(value?.nowMs ?? 0) + Math.min(Math.max(lagMs, 0), 60_000)}
          settings={settings}
          open={open}
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
      {unknown.length > 0 && list(unknown)}
      {pending.length > 0 && (
        <details class="more">
          <summary>{countOf(pending.length)} pending, waiting for a callback</summary>
          {list(pending)}
        </details>
      )}
      {value && value.total > value.calls.length && (
        <p class="soft">{`${value.total - value.calls.length} more are not shown.`}</p>
      )}
      <Reconciled settings={settings} reconciled={reconciled} />
      <Problem text={problem} old={value !== undefined} />
    </Panel>
  );
}

function OpenCallCard(props: {
  call: OpenCall;
  nowMs: number;
  settings: ReconcilerSettings;
  open: (subject: Subject) => void;
}) {
  const { call, nowMs, settings, open } = props;
  const { kind, externalId, method, state, needsOperator, startedAtMs, checks, notFound } = call;
  return (
    <li class="card">
      <div class="card-head">
        <button type="button" class="link" onClick={() => open({ kind, externalId })}>
          {externalId}
        </button>
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
      <p>{nextStep(call, nowMs, settings)}</p>
    </li>
  );
}

function nextStep(
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

function Reconciled(props: {
  settings: ReconcilerSettings;
  reconciled: ReconciledStatus | undefined;
}) {
  const { settings, reconciled } = props;
  if (settings.afterMs === undefined) {
    return <p class="note">Reconciliation is off (RECONCILE_AFTER=0).</p>;
  }
  if (!reconciled) return null;
  const settled = Object.entries(reconciled.settled);
  const probes = Object.entries(reconciled.probes);
  if (settled.length + probes.length + reconciled.givenUp === 0) return null;
  const list = (entries: [string, number][]) =>
    entries.map(([name, count]) => `${words(name)} ${count}`).join(", ");
  // Turns the outcome names of the metric into words.
  const probe = (name: string) => name.replace("learned", "found").replace("notFound", "not found");
  return (
    <p class="soft small-text">
      {[
        "This replica since its start",
        settled.length > 0 && `settled by: ${list(settled)}`,
        probes.length > 0 &&
          `looked up: ${list(probes.map(([name, count]) => [probe(name), count]))}`,
        reconciled.givenUp > 0 && `given up: ${reconciled.givenUp}`,
      ]
        .filter(Boolean)
        .join(" · ")}
    </p>
  );
}
