import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { Session } from "../src/admin/console-api.ts";
import { ApiError, createClient, messageOf } from "./client.ts";
import { Dashboard } from "./dashboard.tsx";
import { capital } from "./parts.tsx";
import { hrefOf, useRoute } from "./route.ts";
import { SignIn } from "./sign-in.tsx";

/** Session storage key of the token; stored only if the operator asks to remember it. */
const tokenKey = "payments-gateway.console.token";

/** Loads the operator's session first, since it decides what the page may show. */
export function App() {
  const [token, setToken] = useState(() => sessionStorage.getItem(tokenKey) ?? undefined);
  const client = useMemo(() => createClient(token), [token]);
  const [session, setSession] = useState<Session>();
  const route = useRoute();
  const [refusal, setRefusal] = useState<string>();
  const [needsToken, setNeedsToken] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [tries, setTries] = useState(0);
  const [busy, setBusy] = useState(true);

  const refuse = useCallback((reason: string | undefined) => {
    sessionStorage.removeItem(tokenKey);
    setSession(undefined);
    setNeedsToken(true);
    setRefusal(reason);
    setToken(undefined);
  }, []);

  useEffect(() => {
    if (needsToken && token === undefined) return setBusy(false);
    const end = new AbortController();
    let timer = 0;
    setBusy(true);
    client.get<Session>("/api/session", {}, end.signal).then(
      (answer) => {
        setBusy(false);
        setProblem(undefined);
        setRefusal(undefined);
        setSession(answer);
      },
      (error: unknown) => {
        if (end.signal.aborted) return;
        setBusy(false);
        const status = error instanceof ApiError ? error.status : 0;
        if (status === 401 || status === 403) {
          return refuse(token === undefined ? undefined : messageOf(error));
        }
        setProblem(messageOf(error));
        timer = setTimeout(
          () => setTries((held) => held + 1),
          Math.min(1_000 * 2 ** tries, 15_000),
        );
      },
    );
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [client, tries, needsToken]);

  const [first] = session?.accounts ?? [];
  const account = route.account ?? first;
  if (session && account !== undefined && !session.accounts.includes(account)) {
    return (
      <main class="sign-in">
        <p role="alert">
          The account {account} is unknown or not yours. <a href="#/">Open yours</a>
        </p>
      </main>
    );
  }
  if (session && account !== undefined) {
    return (
      <Dashboard
        client={client}
        session={session}
        account={account}
        route={route}
        onAccount={(chosen) => {
          location.hash = hrefOf(chosen, { page: "watch" });
        }}
        onSignOut={session.authenticated ? () => refuse(undefined) : undefined}
        onRefused={refuse}
      />
    );
  }
  if (needsToken) {
    return (
      <SignIn
        refusal={refusal ?? problem}
        busy={busy && token !== undefined}
        onToken={(given, keep) => {
          if (keep) sessionStorage.setItem(tokenKey, given);
          setRefusal(undefined);
          setToken(given);
        }}
      />
    );
  }
  return (
    <main class="sign-in">
      <p role="status">{problem ? `${capital(problem)}. Trying again.` : "Loading…"}</p>
    </main>
  );
}
