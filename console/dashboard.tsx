import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import type { Calls, DeadLetterPage, Session, Status } from "../src/admin/console-api.ts";
import type { Client } from "./client.ts";
import { DeadLetters } from "./dead-letters.tsx";
import { Events } from "./events.tsx";
import { Feed } from "./feed.ts";
import { Footer, Header } from "./header.tsx";
import { KnownListPage } from "./known-list.tsx";
import { OpenCalls } from "./open-calls.tsx";
import { usePolled, usePolledPages } from "./polled.ts";
import { hrefOf, type Route, type Subject } from "./route.ts";
import { Sandbox } from "./sandbox.tsx";
import { StatusTiles } from "./status-tiles.tsx";
import { useStore } from "./store.ts";
import { SubjectPage } from "./subject-page.tsx";

const statusEveryMs = 1_000;
const callsEveryMs = 2_000;
const lettersEveryMs = 15_000;

const nextOf = ({ next_cursor }: DeadLetterPage) => next_cursor;

/** The console of one account. */
export function Dashboard(props: {
  client: Client;
  session: Session;
  account: string;
  route: Route;
  onAccount: (account: string) => void;
  onSignOut: (() => void) | undefined;
  onRefused: (reason: string) => void;
}) {
  const { client, session, account, route, onAccount, onSignOut, onRefused } = props;
  const feed = useMemo(() => new Feed(client, account), [client, account]);
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
  const letters = usePolledPages(
    useCallback(
      (signal: AbortSignal, cursor: string | undefined) =>
        client.get<DeadLetterPage>(
          "/dead-letters",
          { account, limit: "50", ...(cursor !== undefined && { cursor }) },
          signal,
        ),
      [client, account],
    ),
    nextOf,
    lettersEveryMs,
  );
  useAgainWhenGrown(status.value?.callbacks.dead_letter, letters.again);

  const main = useRef<HTMLElement>(null);
  useShownRoute(route, main);
  const link = (subject: Subject) => hrefOf(account, { page: "subject", ...subject });
  const notReady = status.value?.notReady ?? [];
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: the fragment of the address is the route */}
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <Header {...{ session, account, onAccount, onSignOut, feed, route }} />
      {notReady.length > 0 && (
        <p class="banner" role="alert">
          Not ready: {notReady.join("; ")}.
        </p>
      )}
      <main id="main" class="board" ref={main} tabIndex={-1}>
        {route.page === "watch" && (
          <>
            <div class="needs">
              <OpenCalls calls={calls} settings={session.reconciler} link={link} />
              <DeadLetters key={account} client={client} account={account} letters={letters} />
            </div>
            <div class="tiles">
              <StatusTiles status={status} />
            </div>
          </>
        )}
        {route.page === "try" && session.links.ledger && (
          <Sandbox key={account} client={client} feed={feed} link={link} />
        )}
        {(route.page === "watch" || route.page === "try") && (
          <Events key={account} feed={feed} account={account} />
        )}
        {route.page === "list" && (
          <KnownListPage
            key={`${account} ${route.kind} ${route.state} ${route.search}`}
            {...{ ...route, client, account }}
          />
        )}
        {route.page === "subject" && (
          <SubjectPage
            key={link(route)}
            {...{ client, account, feed, subject: route }}
            settings={session.reconciler}
            budget={status.value?.budget}
          />
        )}
      </main>
      <Footer links={session.links} status={status.value} />
    </>
  );
}

/** Names the page after its route, and moves the focus to its content when the route changes. */
function useShownRoute(route: Route, main: { readonly current: HTMLElement | null }): void {
  const shown = useRef<string | undefined>(undefined);
  const name = "externalId" in route ? route.externalId : titles[route.page];
  const view = "kind" in route ? `${route.page} ${route.kind} ${name}` : route.page;
  useEffect(() => {
    document.title = `${name} · Payments gateway`;
    if (shown.current !== undefined && shown.current !== view) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    shown.current = view;
  }, [view, name, main]);
}

const titles = { watch: "Watch", try: "Try it", list: "List", subject: "" } as const;

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
