import { print } from "graphql";
import { PaymentUpdatedDocument, type PaymentUpdatedSubscription } from "./documents.ts";

export type PaymentEvent = PaymentUpdatedSubscription["paymentUpdated"];

export interface PaymentWatcher {
  /** Hears of every event, in order, each once. */
  onEvent(event: PaymentEvent): void;
  /** `live` when the stream is open, `reconnecting` while it is not. */
  onState?(state: "live" | "reconnecting"): void;
  /** The token expired or is not for this payment: get a new one and watch again. */
  onRefused?(message: string): void;
}

/**
 * Watches a payment by `EventSource` until the returned function is called. The browser takes up a
 * cut connection by itself; where it gives up, a new watch goes on behind the last event.
 *
 * @param url the gateway's `/graphql`
 * @param watchToken of `createWatchToken`, for this payment
 */
export function watchPayment(
  url: string,
  externalId: string,
  watchToken: string,
  watcher: PaymentWatcher,
): () => void {
  let cursor: string | undefined;
  let tries = 0;
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stopped = new AbortController();

  const open = () => {
    const address = new URL(url, globalThis.location?.href);
    address.searchParams.set("query", print(PaymentUpdatedDocument));
    address.searchParams.set("variables", JSON.stringify({ externalId, after: cursor ?? null }));
    address.searchParams.set("watch_token", watchToken);
    source = new EventSource(address);
    source.addEventListener("open", () => {
      tries = 0;
      watcher.onState?.("live");
    });
    source.addEventListener("next", (message: MessageEvent<string>) => {
      const { data, errors } = JSON.parse(message.data) as Answer;
      const event = data?.paymentUpdated;
      if (event && event.cursor !== cursor) {
        cursor = event.cursor;
        watcher.onEvent(event);
      }
      const [error] = errors ?? [];
      if (error && refusals.has(error.extensions?.code ?? "")) refuse(error.message);
    });
    // The gateway is being restarted, say: another replica goes on.
    source.addEventListener("complete", again);
    source.addEventListener("error", () => {
      watcher.onState?.("reconnecting");
      if (source.readyState === EventSource.CLOSED) void askWhy(address);
    });
  };
  /** An EventSource that gave up does not tell the status for which it did. */
  const askWhy = async (address: URL) => {
    const asking = new AbortController();
    const signal = AbortSignal.any([asking.signal, stopped.signal]);
    const headers = { accept: "text/event-stream" };
    const answer = await fetch(address, { headers, signal }).catch(() => undefined);
    const isRefused = answer !== undefined && refusedStatuses.has(answer.status);
    const text = isRefused ? await answer.text().catch(() => "") : "";
    asking.abort();
    if (stopped.signal.aborted) return;
    const [, json = "{}"] = /^data: (\{.*\})$/m.exec(text) ?? [];
    const [error] = (JSON.parse(json) as Answer).errors ?? [];
    // What was missed is gone: a new watch begins with the current state.
    const isExpired = error?.extensions?.code === "CURSOR_EXPIRED";
    if (isExpired) cursor = undefined;
    if (!isRefused || isExpired) again();
    else refuse(error?.message ?? answer.statusText);
  };
  const refuse = (message: string) => {
    stop();
    watcher.onRefused?.(message);
  };
  const again = () => {
    source.close();
    watcher.onState?.("reconnecting");
    timer = setTimeout(open, Math.random() * Math.min(longestPauseMs, 500 * 2 ** tries++));
  };
  const stop = () => {
    stopped.abort();
    clearTimeout(timer);
    source.close();
  };
  open();
  return stop;
}

interface Answer {
  readonly data?: PaymentUpdatedSubscription | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { code?: string };
  }[];
}

const refusals = new Set(["UNAUTHENTICATED", "FORBIDDEN"]);
/** A request that is wrong, a token that is, or one for another payment. */
const refusedStatuses = new Set([400, 401, 403]);
const longestPauseMs = 10_000;
