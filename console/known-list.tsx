import { useCallback } from "preact/hooks";
import type { History } from "../src/admin/console-api.ts";
import type { KindName } from "../src/model/kinds.ts";
import type { Client } from "./client.ts";
import { type ShownState, shownStateOf } from "./event-row.ts";
import { countOf } from "./format.ts";
import { kindTexts } from "./kinds.ts";
import { type KnownItem, type KnownList, knownList } from "./known.ts";
import { capital, Panel, Problem, Row, Skeleton, textOf } from "./parts.tsx";
import { usePolledPages } from "./polled.ts";
import { hrefOf } from "./route.ts";

const listEveryMs = 5_000;
/** A search goes through many payments, and is repeated seldom. */
const searchEveryMs = 60_000;

/** The payments or payouts that the gateway knows, by state, with a search by either id. */
export function KnownListPage(props: {
  client: Client;
  account: string;
  kind: KindName;
  state: string;
  search: string;
}) {
  const { client, account, kind, state, search } = props;
  const { resource, subject, states } = kindTexts[kind];
  const load = useCallback(
    async (signal: AbortSignal, after: string | undefined): Promise<KnownList> => {
      // A search by external_id finds it at once, however old it is.
      const asksExactly = after === undefined && search !== "" && state === "";
      const [{ items, ...rest }, exact] = await Promise.all([
        knownList(client, account, kind, { state, search, after }, signal),
        asksExactly ? exactly(client, { account, kind, external_id: search }, signal) : [],
      ]);
      return { ...rest, items: [...exact, ...items] };
    },
    [client, account, kind, state, search],
  );
  const everyMs = search === "" ? listEveryMs : searchEveryMs;
  const { value, problem, more } = usePolledPages(load, nextOf, everyMs);
  const items = distinct(value?.flatMap((page) => page.items) ?? []);
  const next = value?.at(-1)?.next;
  const searched = value?.reduce((sum, page) => sum + page.searched, 0) ?? 0;
  const href = (shown: string) => hrefOf(account, { page: "list", kind, state: shown, search });
  return (
    <Panel id="list" title={capital(resource)}>
      <search>
        <form
          class="filter"
          onSubmit={(event) => {
            event.preventDefault();
            const asked = new FormData(event.currentTarget).get("search")?.toString().trim() ?? "";
            location.hash = hrefOf(account, { page: "list", kind, state, search: asked });
          }}
        >
          <label class="grow">
            <span>External id or {subject} id</span>
            <input
              key={search}
              type="search"
              name="search"
              defaultValue={search}
              autocomplete="off"
              spellcheck={false}
            />
          </label>
          <button type="submit">Search</button>
        </form>
      </search>
      <nav class="tabs" aria-label="By state">
        {["", ...states].map((each) => (
          <a key={each} href={href(each)} aria-current={each === state ? "page" : undefined}>
            {each === "" ? "All" : capital(textOf(each as ShownState))}
          </a>
        ))}
      </nav>
      {!value && !problem && <Skeleton lines={6} />}
      {value && items.length === 0 && (
        <p class="empty">
          {next === undefined ? `No ${resource} like that are known here.` : "None found yet."}
        </p>
      )}
      {items.length > 0 && (
        <ul class="rows">
          {items.map((item) => (
            <li key={item.externalId}>
              <Row
                href={hrefOf(account, { page: "subject", kind, externalId: item.externalId })}
                atMs={item.firstSeenAtMs}
                shownState={item.needsOperator ? "needs_operator" : shownStateOf(item.state)}
                title={item.externalId}
                details={item.subjectIds.at(-1) ?? ""}
                amount={item.amount ? `${item.amount} ${item.currency ?? ""}` : undefined}
              />
            </li>
          ))}
        </ul>
      )}
      <footer class="list-foot">
        {next !== undefined && (
          <button type="button" class="small" onClick={more}>
            {search === "" ? "Show more" : "Search further"}
          </button>
        )}
        <span class="soft" role="status">
          {search !== "" && value && `Looked through the newest ${countOf(searched)}.`}
        </span>
      </footer>
      <Problem text={problem} old={value !== undefined} />
    </Panel>
  );
}

async function exactly(
  client: Client,
  query: { readonly account: string; readonly kind: KindName; readonly external_id: string },
  signal: AbortSignal,
): Promise<KnownItem[]> {
  const history = await client.get<History>("/api/history", query, signal);
  const { state, needsOperator, operations, events } = history;
  if (state === undefined) return [];
  const { amount = null, currency = null } = operations[0] ?? {};
  return [
    {
      ...{ externalId: query.external_id, state, needsOperator },
      firstSeenAtMs: events.at(-1)?.receivedAtMs ?? history.nowMs,
      subjectIds: operations.map(({ subjectId }) => subjectId),
      ...{ amount, currency },
    },
  ];
}

const nextOf = ({ next }: KnownList) => next;

/** A search may find the one with just that external_id twice. */
function distinct(items: readonly KnownItem[]): KnownItem[] {
  return [...new Map(items.toReversed().map((item) => [item.externalId, item])).values()].reverse();
}
