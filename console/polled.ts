import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "./client.ts";
import { pause } from "./pause.ts";

/** The latest value of a resource that the page polls. */
export interface Polled<T> {
  readonly value: T | undefined;
  /** Why the last request failed; `value` is then from an earlier one. */
  readonly problem: string | undefined;
  /** Polls again at once. */
  readonly again: () => void;
}

/**
 * Polls every `everyMs` milliseconds while the page is visible. After a failure the pauses grow, up
 * to 15 s, and the last value stays.
 * @param ask a new function means another resource: the old value is dropped
 */
export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, everyMs: number): Polled<T> {
  const [answer, setAnswer] = useState<{ value?: T; problem?: string }>({});
  const wake = useRef<() => void>(() => {});
  useEffect(() => {
    const end = new AbortController();
    setAnswer({});
    void (async () => {
      let pauseMs = everyMs;
      while (!end.signal.aborted) {
        // Created before the request: `again` during the request starts another one after it.
        const woken = new AbortController();
        wake.current = () => woken.abort();
        try {
          const value = await ask(end.signal);
          if (end.signal.aborted) return;
          setAnswer({ value });
          pauseMs = everyMs;
        } catch (error) {
          if (end.signal.aborted) return;
          setAnswer(({ value }) => ({
            ...(value !== undefined && { value }),
            problem: messageOf(error),
          }));
          pauseMs = Math.min(pauseMs * 2, maxPauseMs);
        }
        await pause(pauseMs, woken.signal, end.signal);
        await visible(end.signal);
      }
    })();
    return () => end.abort();
  }, [ask, everyMs]);
  const again = useCallback(() => wake.current(), []);
  return { value: answer.value, problem: answer.problem, again };
}

/** The pages of a list that are shown, from its beginning. */
export interface PolledPages<Page> extends Polled<readonly Page[]> {
  /** Shows one page more. */
  readonly more: () => void;
}

/**
 * Polls a list page by page. All pages that are shown are read anew each time: what is added at the
 * beginning shifts the others, and what is known of their items changes.
 * @param nextOf where a page is followed by another one
 */
export function usePolledPages<Page>(
  ask: (signal: AbortSignal, after: string | undefined) => Promise<Page>,
  nextOf: (page: Page) => string | undefined,
  everyMs: number,
): PolledPages<Page> {
  const wanted = useRef(1);
  const askAll = useCallback(
    async (signal: AbortSignal) => {
      const pages: Page[] = [];
      let after: string | undefined;
      do {
        const page = await ask(signal, after);
        pages.push(page);
        after = nextOf(page);
      } while (after !== undefined && pages.length < wanted.current);
      return pages;
    },
    [ask, nextOf],
  );
  const polled = usePolled(askAll, everyMs);
  const more = () => {
    wanted.current += 1;
    polled.again();
  };
  return { ...polled, more };
}

const maxPauseMs = 15_000;

/** Resolves when the page is visible, since a page in the background should not poll. */
async function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const once = { once: true };
    document.addEventListener("visibilitychange", () => resolve(), once);
    signal.addEventListener("abort", () => resolve(), once);
  });
}

/**
 * The gateway's time, updated once a second: ages are measured by its clock, since the browser's
 * may differ.
 */
export function useGatewayNow(answer: { readonly nowMs: number } | undefined): number {
  const now = useNow();
  const answered = useRef<{ of: typeof answer; atMs: number }>({ of: undefined, atMs: now });
  if (answered.current.of !== answer) answered.current = { of: answer, atMs: Date.now() };
  const sinceMs = Math.min(Math.max(now - answered.current.atMs, 0), 60_000);
  return (answer?.nowMs ?? now) + sinceMs;
}

/** The current time, updated once a second, to show ages. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
