import type { Session, Status } from "../src/admin/console-api.ts";
import type { KindName } from "../src/model/kinds.ts";
import { webAddress } from "./event-row.ts";
import type { Feed } from "./feed.ts";
import { durationOf } from "./format.ts";
import { kindTexts } from "./kinds.ts";
import { useNow } from "./polled.ts";
import { hrefOf, type Route, type View } from "./route.ts";
import { useStore } from "./store.ts";

/** The pages, the account and the state of the connection. */
export function Header(props: {
  session: Session;
  account: string;
  onAccount: (account: string) => void;
  onSignOut: (() => void) | undefined;
  feed: Feed;
  route: Route;
}) {
  const { session, account, onAccount, onSignOut, feed, route } = props;
  const shown = "kind" in route ? kindTexts[route.kind].resource : route.page;
  return (
    <header class="top">
      <div class="brand">
        <h1>Payments gateway</h1>
        {session.links.ledger && <span class="chip accent">sandbox</span>}
        {!session.durable && (
          <span
            class="chip warn"
            title="Without REDIS_URL or DATA_DIR, events end with this process"
          >
            in memory
          </span>
        )}
      </div>
      <nav class="pages" aria-label="Pages">
        {pages(session).map(([name, text, view]) => (
          <a
            key={name}
            href={hrefOf(account, view)}
            aria-current={name === shown ? "page" : undefined}
          >
            {text}
          </a>
        ))}
      </nav>
      <ConnectionPill feed={feed} />
      <div class="where">
        {session.accounts.length > 1 && (
          <label class="account">
            <span>Account</span>
            <select
              value={account}
              onChange={({ currentTarget }) => onAccount(currentTarget.value)}
            >
              {session.accounts.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        {onSignOut && (
          <button type="button" class="small" onClick={onSignOut}>
            Sign out
          </button>
        )}
      </div>
    </header>
  );
}

function pages({ links }: Session): (readonly [name: string, text: string, view: View])[] {
  const list = (kind: KindName) => ({ page: "list", kind, state: "", search: "" }) as const;
  return [
    ["watch", "Watch", { page: "watch" }],
    ["payments", "Payments", list("payment")],
    ["payouts", "Payouts", list("payout")],
    ...(links.ledger ? [["try", "Try it", { page: "try" }] as const] : []),
  ];
}

/** Links to pages elsewhere, and the replica that answers. */
export function Footer({ links, status }: { links: Session["links"]; status: Status | undefined }) {
  const shown = [
    ["GraphiQL", webAddress(links.graphiql)],
    ["Demo shop", webAddress(links.demo)],
    ["Sandbox's ledger", webAddress(links.ledger)],
  ] as const;
  return (
    <footer class="foot">
      {shown.map(
        ([text, url]) =>
          url && (
            <a key={text} href={url} target="_blank" rel="noopener noreferrer">
              {text}
              <span class="unseen"> (new tab)</span> ↗
            </a>
          ),
      )}
      {status && (
        <span class="replica soft" title="Charts and callback figures are this replica's own">
          replica <strong>{status.replica.host}</strong> · process {status.replica.pid} · up{" "}
          {durationOf(status.nowMs - status.replica.startedAtMs)}
        </span>
      )}
    </footer>
  );
}

function ConnectionPill({ feed }: { feed: Feed }) {
  const connection = useStore(feed.connection);
  const now = useNow();
  const { state } = connection;
  const seconds = state === "waiting" ? Math.ceil((connection.retryAtMs - now) / 1_000) : 0;
  const text = {
    live: "Live",
    connecting: "Connecting",
    waiting: "Reconnecting",
    refused: "Not allowed",
  }[state];
  return (
    <div class={`pill ${state}`}>
      <span class="dot" aria-hidden="true" />
      <span role="status">
        {text}
        {state === "waiting" && <span class="unseen">: {connection.reason}</span>}
      </span>
      {state === "waiting" && (
        <>
          <span aria-hidden="true">{seconds > 0 ? `in ${seconds} s` : "now"}</span>
          <button
            type="button"
            class="link"
            title={connection.reason}
            onClick={() => feed.retryNow()}
          >
            Now
          </button>
        </>
      )}
    </div>
  );
}
