/** The two ways in which a frontend uses the gateway: a request, and a watch. */

/**
 * The gateway refused the call and did nothing; the message is for the customer. Any other error
 * leaves the outcome open.
 */
export class RefusedError extends Error {}

const refused = "This is not possible right now. Please try again later.";

/** Runs a query or a mutation. @throws RefusedError for `errors`, else Error without an answer */
export async function graphql(query, variables, headers = {}) {
  const response = await fetch("/graphql", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors?.length) throw new RefusedError(errors[0].extensions?.userMessage ?? refused);
  return data;
}

const expired = "This page has expired. Please open your order again.";

const subscription = `subscription Watch($id: ID!, $after: String) {
  paymentUpdated(externalId: $id, after: $after) {
    cursor state source callOutcome receivedAt
    payment { operation details { status statusCode amount currency userMessage } }
  }
}`;

/**
 * Watches a payment while the page is open. The browser reconnects by itself when the connection is
 * cut. When it gives up, for example because a proxy answered with an error, a new watch starts
 * after the last event.
 */
export function watchPayment(externalId, token, { onEvent, onState, onEnd }) {
  let cursor;
  let tries = 0;
  let source;
  let timer;
  const stopped = new AbortController();
  const open = () => {
    const url = new URL("/graphql", location.href);
    url.searchParams.set("query", subscription);
    url.searchParams.set("variables", JSON.stringify({ id: externalId, after: cursor ?? null }));
    url.searchParams.set("watch_token", token);
    source = new EventSource(url);
    source.addEventListener("open", () => {
      tries = 0;
      onState("live");
    });
    source.addEventListener("next", ({ data }) => {
      const { data: result, errors } = JSON.parse(data);
      const event = result?.paymentUpdated;
      if (event && event.cursor !== cursor) {
        cursor = event.cursor;
        onEvent(event);
      }
      const code = errors?.[0]?.extensions?.code;
      if (code === "UNAUTHENTICATED" || code === "FORBIDDEN") end(expired);
    });
    source.addEventListener("complete", () => again());
    source.addEventListener("error", () => {
      onState("reconnecting");
      if (source.readyState === EventSource.CLOSED) askWhy(url);
    });
  };
  // An EventSource that gave up does not show the HTTP status, so request it once more by fetch.
  const askWhy = async (url) => {
    const asking = new AbortController();
    const signal = AbortSignal.any([asking.signal, stopped.signal]);
    const headers = { accept: "text/event-stream" };
    const answer = await fetch(url, { headers, signal }).catch(() => undefined);
    asking.abort();
    if (stopped.signal.aborted) return;
    if ([400, 401, 403].includes(answer?.status)) end(expired);
    else again();
  };
  const again = () => {
    source.close();
    onState("reconnecting");
    // Jitter, so that the customers of a shop do not all return at once.
    const delayMs = Math.random() * Math.min(10_000, 500 * 2 ** tries++);
    timer = setTimeout(open, delayMs);
  };
  const end = (message) => {
    stopped.abort();
    source.close();
    clearTimeout(timer);
    onState("ended");
    onEnd?.(message);
  };
  open();
  return () => end();
}
