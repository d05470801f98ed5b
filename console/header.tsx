import type { Session, Status } from "../src/admin/console-api.ts";
import type { Feed } from "./feed.ts";
import { durationOf } from "./format.ts";
import { useNow } from "./polled.ts";
import { useStore } from "./store.ts";

/** The account, the state of the connection, and the replica that answers. */
export function Header(props: {
  session: Session;
  account: string;
  onAccount: (account: string) => void;
  onSignOut: (() => void) | undefined;
  feed: Feed;
  status: Status | undefined;
}) {
  const { session, account, onAccount, onSignOut, feed, status } = props;
  return (
    <header class="top">
      <div class="brand">
        <h1>Payments gateway</h1>
        {session.sandboxUrl && <span class="chip accent">sandbox</span>}
        {!session.durable && (
          <span
            class="chip warn"
            title="Without REDIS_URL or DATA_DIR, events end with this process"
          >
            in memory
          </span>
        )}
      </div>
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
        {status && (
          <span class="replica soft" title="Charts and callback figures are this replica's own">
            replica <strong>{status.replica.host}</strong> · process {status.replica.pid} · up{" "}
            {durationOf(status.nowMs - status.replica.startedAtMs)}
          </span>
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
