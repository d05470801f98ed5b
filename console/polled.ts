import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "./client.ts";

/** The latest answer to a question that is asked again and again. */
export interface Polled<T> {
  readonly value: T | undefined;
  /** Why the last question got no answer; the value is an older one then. */
  readonly problem: string | undefined;
  /** Asks again at once. */
  readonly again: () => void;
}

/**
 * Asks every so often while the page is seen. After a failure the pauses grow; what was known stays.
 * @param ask renewed when it asks for something else: what was known of that is forgotten
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
        // Whoever wants it anew while it is being asked for gets the next answer too.
        const rested = rest(wake, end.signal);
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
        await rested.after(pauseMs);
        await visible(end.signal);
      }
    })();
    return () => end.abort();
  }, [ask, everyMs]);
  const again = useCallback(() => wake.current(), []);
  return { value: answer.value, problem: answer.problem, again };
}

const maxPauseMs = 15_000;

function rest(wake: { current: () => void }, signal: AbortSignal) {
  let woken = false;
  let resolve = () => {};
  wake.current = () => {
    woken = true;
    resolve();
  };
  signal.addEventListener("abort", () => resolve(), { once: true });
  return {
    after: (ms: number) =>
      new Promise<void>((done) => {
        resolve = done;
        if (woken || signal.aborted) done();
        else setTimeout(done, ms);
      }),
  };
}

/** Nobody looks at a page in the background: it asks for nothing. */
async function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const once = { once: true };
    document.addEventListener("visibilitychange", () => resolve(), once);
    signal.addEventListener("abort", () => resolve(), once);
  });
}

/** The time, once a second, for ages. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
