import type { SandboxResult, ScenarioInfo } from "../src/admin/console-api.ts";
import { webAddress } from "./event-row.ts";
import type { Feed } from "./feed.ts";
import { Badge } from "./parts.tsx";
import type { Subject } from "./route.ts";
import { titleOf } from "./scenario.ts";
import { useStore } from "./store.ts";

/** A payment or payout that the operator made on this page. */
export interface Tried extends Subject {
  readonly scenario: ScenarioInfo;
  /** The gateway's answer to the caller; undefined until it arrives. */
  readonly answer:
    | SandboxResult
    | { readonly kind: "failed"; readonly message: string }
    | undefined;
}

/** The payments and payouts made on this page, each with its current state. */
export function TriedList(props: {
  tried: readonly Tried[];
  feed: Feed;
  link: (subject: Subject) => string;
}) {
  const { tried, feed, link } = props;
  const { rows } = useStore(feed.held);
  return (
    <ul class="cards tried" aria-label="What was tried">
      {tried.map((each) => {
        const isThis = (one: Subject) =>
          one.kind === each.kind && one.externalId === each.externalId;
        const row = rows.find(isThis);
        const { answer, scenario } = each;
        const action = row
          ? row.actionUrl
          : answer?.kind === "answered" && webAddress(answer.actionUrl);
        return (
          <li key={link(each)} class="card">
            <div class="card-head">
              <a href={link(each)}>{each.externalId}</a>
              {row ? (
                <Badge shownState={row.state} />
              ) : (
                <span class="soft">
                  {answer && answer.kind !== "answered" ? "no event" : "waiting"}
                </span>
              )}
            </div>
            <p class="soft">
              {each.kind} · {titleOf(scenario)}
            </p>
            {action && (
              <p>
                <a class="button" href={action} target="_blank" rel="noopener noreferrer">
                  Open the 3DS page<span class="unseen"> (new tab)</span> ↗
                </a>
              </p>
            )}
            {answer && answer.kind !== "answered" && (
              <p class="told">
                The caller got{answer.kind === "refused" ? ` ${answer.code}` : ""}: {answer.message}
              </p>
            )}
          </li>
        );
      })}
    </ul>
  );
}
