import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Calls, Session, Status } from "../src/admin/console-api.ts";
import type { DeadLetterPage } from "../src/admin/dead-letter.ts";
import type { Client } from "./client.ts";
import { DeadLetters } from "./dead-letters.tsx";
import { Events, type Subject } from "./events.tsx";
import { Feed } from "./feed.ts";
import { Header } from "./header.tsx";
import { OpenCalls } from "./open-calls.tsx";
import { usePolled } from "./polled.ts";
import { Sandbox } from "./sandbox.tsx";
import { StatusTiles } from "./status-tiles.tsx";
import { useStore } from "./store.ts";
import { SubjectDialog } from "./subject-dialog.tsx";

const statusEveryMs = 1_000;
const callsEveryMs = 2_000;
const lettersEveryMs = 15_000;

/** The console of one account. */
export function Dashboard(props: {
  client: Client;
  session: Session;
  account: string;
  onAccount: (account: string) => void;
  onSignOut: (() => void) | undefined;
  onRefused: (reason: string) => void;
}) {
  const { client, session, account, onAccount, onSignOut, onRefused } = props;
  const feed = useMemo(() => new Feed(client, account), [client, account]);
  const [subject, setSubject] = useState<Subject>();
  useEffect(() => {
    void feed.run();
    return () => feed.close();
  }, [feed]);

  const connection = useStore(feed.connection);
  useEffect(() => {
    if (connection.state === "refused") onRefused(connection.reason);
  }, [connection, onRefused]);

  const asker =
    <T,>(path: string) =>
    (signal: AbortSignal) =>
      client.get<T>(path, { account }, signal);
  const status = usePolled(
    useCallback(asker<Status>("/api/status"), [client, account]),
    statusEveryMs,
  );
  const calls = usePolled(useCallback(asker<Calls>("/api/calls"), [client, account]), callsEveryMs);
  const letters = usePolled(
    useCallback(asker<DeadLetterPage>("/api/dead-letters"), [client, account]),
    lettersEveryMs,
  );
  useAgainWhenGrown(status.value?.callbacks.total.dead_letter, letters.again);

  const notReady = status.value?.notReady ?? [];
  return (
    <>
      <a class="skip" href="#events">
        Skip to the events
      </a>
      <Header
        session={session}
        account={account}
        onAccount={onAccount}
        onSignOut={onSignOut}
        feed={feed}
        status={status.value}
      />
      {notReady.length > 0 && (
        <p class="banner" role="alert">
          Not ready: {notReady.join("; ")}.
        </p>
      )}
      <main class="board">
        <div class="tiles">
          <StatusTiles status={status} />
        </div>
        <div class="columns">
          <Events key={account} feed={feed} open={setSubject} />
          <div class="side">
            {session.sandboxUrl && (
              <Sandbox
                client={client}
                feed={feed}
                sandboxUrl={session.sandboxUrl}
                open={setSubject}
              />
            )}
            <OpenCalls
              calls={calls}
              settings={session.reconciler}
              reconciled={status.value?.reconciled}
              open={setSubject}
            />
            <DeadLetters key={account} client={client} account={account} letters={letters} />
          </div>
        </div>
      </main>
      {subject && (
        <SubjectDialog
          client={client}
          account={account}
          feed={feed}
          subject={subject}
          onClose={() => setSubject(undefined)}
        />
      )}
    </>
  );
}

/** Polls again as soon as the count changes, or if it is above 0 at first. */
function useAgainWhenGrown(count: number | undefined, again: () => void): void {
  const before = useRef(count);
  useEffect(() => {
    if (count !== undefined && count !== before.current) {
      if (before.current !== undefined || count > 0) again();
      before.current = count;
    }
  }, [count, again]);
}
