import type {
  BudgetStatus,
  Status,
  UpstreamHealth,
  UpstreamStatus,
} from "../src/admin/console-api.ts";
import { Bars, Gauge, Line } from "./charts.tsx";
import { countOf, durationOf, plural, words } from "./format.ts";
import { Panel, Problem, Skeleton } from "./parts.tsx";
import type { Polled } from "./polled.ts";

/** Tiles with the state of the rate budget, the payments service and the callbacks. */
export function StatusTiles({ status: { value, problem } }: { status: Polled<Status> }) {
  const old = <Problem text={problem} old={value !== undefined} />;
  return (
    <>
      <Panel id="budget" title="Rate budget" aside={value && <Source {...value.budget} />}>
        {value ? <Budget {...value.budget} history={value.history} /> : <Skeleton lines={3} />}
        {old}
      </Panel>
      <Panel
        id="upstream"
        title="Payments service"
        aside={value && <Health {...value.upstream} isOld={problem !== undefined} />}
      >
        {value ? <Upstream {...value.upstream} history={value.history} /> : <Skeleton lines={3} />}
      </Panel>
      <Panel id="callbacks" title="Callbacks" aside={<span class="soft">last 5 min</span>}>
        {value ? <Callbacks recent={value.callbacks} /> : <Skeleton lines={3} />}
      </Panel>
    </>
  );
}

const sources: Readonly<Record<BudgetStatus["source"], readonly [text: string, title: string]>> = {
  shared: ["shared", "All replicas share it through Redis"],
  share: ["on its own share", "Redis is away: this replica goes on with its share"],
  own: ["this process", "Without Redis it is this process's own"],
};

function Source({ source }: BudgetStatus) {
  const [text, title] = sources[source];
  return (
    <span class={`chip ${source === "share" ? "warn" : ""}`} title={title}>
      {text}
    </span>
  );
}

type WithHistory = Pick<Status, "history">;

function Budget(budget: BudgetStatus & WithHistory) {
  const { limit, remaining, resetSeconds, reserve, history, callers } = budget;
  const sent = history.reduce((sum, point) => sum + point.calls, 0);
  const lowest = Math.min(...history.map((point) => point.remaining ?? limit));
  return (
    <>
      <div class="budget">
        <Gauge value={remaining} max={limit} reserve={reserve} label="Requests left" />
        <dl class="facts">
          <dt>limit</dt>
          <dd>{countOf(limit)} a second</dd>
          <dt>kept for money</dt>
          <dd>{Math.round(reserve * 100)}%</dd>
          <dt>full again</dt>
          <dd>{resetSeconds === 0 ? "now" : `in ${resetSeconds} s`}</dd>
        </dl>
      </div>
      <Line
        values={history.map((point) => point.remaining)}
        max={limit}
        label={`Requests left in the last 5 minutes: ${lowest} at the lowest, ${plural(sent, "request")} sent`}
      />
      <p class="caption">
        <span>5 min ago</span>
        <span>{plural(sent, "request")} sent</span>
        <span>now</span>
      </p>
      <details class="more">
        <summary>By caller</summary>
        {callers.length === 0 ? (
          <p class="soft">No calls in the last 5 minutes.</p>
        ) : (
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">caller</th>
                  <th scope="col">calls</th>
                  <th scope="col">refused</th>
                  <th scope="col">longest wait</th>
                </tr>
              </thead>
              <tbody>
                {callers.map(({ caller, calls, refused, longestWaitMs }) => (
                  <tr key={caller}>
                    <th scope="row">{caller}</th>
                    <td>{countOf(calls)}</td>
                    <td>{countOf(refused)}</td>
                    <td>{durationOf(longestWaitMs)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </details>
    </>
  );
}

const healths: Readonly<Record<UpstreamHealth, readonly [tone: string, text: string]>> = {
  idle: ["", "no calls"],
  healthy: ["good", "healthy"],
  degraded: ["warn", "some calls fail"],
  failing: ["bad", "failing"],
  refused: ["bad", "credentials refused"],
};

/** While the gateway cannot be asked, nothing is known of the service either. */
function Health({ health, isOld }: UpstreamStatus & { readonly isOld: boolean }) {
  const [tone, text] = isOld ? ["", "not known now"] : healths[health];
  return <span class={`chip ${tone}`}>{text}</span>;
}

const breakerWords = { closed: "calls go through", open: "failing fast" };

function Upstream({ minute, history, breakers }: UpstreamStatus & WithHistory) {
  const slowest = Math.max(...history.map(({ p95Ms }) => p95Ms ?? 0), 0);
  const failed = history.reduce((sum, point) => sum + point.failed, 0);
  const isOpen = breakers.money !== "closed" || breakers.other !== "closed";
  return (
    <>
      <dl class="figures">
        <div>
          <dt>median</dt>
          <dd>{minute.p50Ms === null ? "–" : durationOf(minute.p50Ms)}</dd>
        </div>
        <div>
          <dt>95%</dt>
          <dd>{minute.p95Ms === null ? "–" : durationOf(minute.p95Ms)}</dd>
        </div>
        <div>
          <dt>calls/min</dt>
          <dd>{countOf(minute.calls)}</dd>
        </div>
        <div>
          <dt>failed</dt>
          <dd class={minute.failed > 0 ? "bad-text" : ""}>{countOf(minute.failed)}</dd>
        </div>
      </dl>
      <Bars
        values={history.map(({ calls, failed: bad }) => ({ all: calls, bad }))}
        label={`Calls in the last 5 minutes, ${failed} of them failed; the slowest 5% took up to ${durationOf(slowest)}`}
      />
      <p class="caption">
        <span>5 min ago</span>
        <span>calls, failed ones in red</span>
        <span>now</span>
      </p>
      {isOpen && (
        <p class="note">
          Money: {breakerWords[breakers.money]}. Reads: {breakerWords[breakers.other]}.
        </p>
      )}
    </>
  );
}

/** Verdicts that are always shown, in this order; others are shown only if there are any. */
const verdicts: readonly (readonly [verdict: string, tone: string])[] = [
  ["stored", "good"],
  ["duplicate", ""],
  ["dead_letter", "warn"],
  ["bad_signature", "bad"],
];

function Callbacks({ recent }: { recent: Status["callbacks"] }) {
  const usual = new Map(verdicts);
  const others = Object.keys(recent).filter((verdict) => !usual.has(verdict));
  const shown = [...usual.keys(), ...others];
  const most = Math.max(...shown.map((verdict) => recent[verdict] ?? 0), 1);
  return (
    <ul class="verdicts">
      {shown.map((verdict) => {
        const count = recent[verdict] ?? 0;
        return (
          <li key={verdict} class={usual.get(verdict) ?? "bad"}>
            <span>{words(verdict)}</span>
            <span class="bar-track" aria-hidden="true">
              <span style={{ width: `${(count / most) * 100}%` }} />
            </span>
            <strong>{countOf(count)}</strong>
          </li>
        );
      })}
    </ul>
  );
}
