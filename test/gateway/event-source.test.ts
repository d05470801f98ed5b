import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { accessEnv, newKey, scratch } from "../auth/issuer.ts";
import { newPage, withoutChromium } from "../chromium.ts";
import { type CuttingProxy, startCuttingProxy } from "../cutting-proxy.ts";
import { serve } from "../listen.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { clientOf, cursorsOf, paymentTold, sendCallback, sendRefund } from "./callers.ts";

const files = scratch();
const key = newKey();
const access = accessEnv(files, [{ name: "shop", key, scopes: ["events:read", "watch:create"] }]);

async function start(t: TestContext, env: Record<string, string>) {
  const gateway = closing(t, await startTestGateway({ ...access, ...env }));
  return { gateway, proxy: closing(t, await startCuttingProxy(gateway.publicUrl)) };
}

const headers = { authorization: `Bearer ${key}` };

/** The URL with a watch token that a page opens through the proxy: GraphQL, or a plain watch. */
async function addressOf(
  gateway: Gateway,
  proxy: Pick<CuttingProxy, "url">,
  externalId: string,
  plain = false,
): Promise<string> {
  const { token } = await clientOf(EventService, gateway).createWatchToken(
    { externalId, kind: EventKind.PAYMENT },
    { headers },
  );
  if (plain) {
    const query = new URLSearchParams({ watch_token: token, until_final: "true" });
    return `${proxy.url}/watch/payments/${externalId}?${query}`;
  }
  const query = `subscription { paymentUpdated(externalId: "${externalId}", untilFinal: true) { cursor final } }`;
  return `${proxy.url}/graphql?${new URLSearchParams({ query, watch_token: token })}`;
}

/**
 * Sends events before and after each of two cuts of the connection, then the final event. Resolves
 * with the number of events.
 */
async function broken(
  { gateway, proxy }: Awaited<ReturnType<typeof start>>,
  seen: () => number,
): Promise<number> {
  let n = 0;
  const send = async (count: number) => {
    for (let i = 0; i < count; i++) await sendRefund(gateway, "order", n++);
  };
  for (let round = 1; round <= 2; round++) {
    await send(5);
    await until(() => seen() >= n, "events before the cut");
    proxy.cut();
    proxy.mend();
    await send(5);
    // Two sources, each of which connects again.
    await until(() => proxy.connections >= 2 * (round + 1), "they connect again");
  }
  await send(5);
  await sendCallback(gateway, paymentTold("order"));
  return n + 1;
}

test("EventSources of a browser, by GraphQL and plain, see every event once over broken connections", {
  skip: withoutChromium,
}, async (t) => {
  const page = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>shop</title>");
  });
  const origin = await serve(t, page);
  const tab = await newPage(t);
  const started = await start(t, { CORS_ORIGINS: origin });
  const { gateway, proxy } = started;
  await tab.goto(origin);
  const seen: [string[], string[]] = [[], []];
  const ended = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await tab.exposeFunction("seenEvent", (at: 0 | 1, cursor: string) => seen[at].push(cursor));
  await tab.exposeFunction("streamEnded", (at: number) => ended[at]?.resolve());
  for (const at of [0, 1]) {
    const address = await addressOf(gateway, proxy, "order", at === 1);
    await tab.evaluate(watchInPage, { address, at });
  }
  const count = await broken(started, () => Math.min(...seen.map(({ length }) => length)));
  await Promise.all(ended.map(({ promise }) => promise));
  const logged = await cursorsOf(gateway, count, headers);
  for (const cursors of seen) assert.deepEqual(cursors, logged);
});

/** What is used of a browser's EventSource. */
interface Source {
  readonly readyState: number;
  addEventListener(
    name: string,
    hear: (event: { readonly data: string; readonly lastEventId: string }) => void,
  ): void;
}

/** Runs in the page: an EventSource that ignores `complete`. Resolves when it is open. */
function watchInPage({ address, at }: { address: string; at: number }): Promise<void> {
  const page = globalThis as unknown as {
    EventSource: new (address: string) => Source;
    seenEvent(at: number, cursor: string): void;
    streamEnded(at: number): void;
  };
  const source = new page.EventSource(address);
  source.addEventListener("next", ({ data, lastEventId }) => {
    if (JSON.parse(data).data) page.seenEvent(at, lastEventId);
  });
  source.addEventListener("message", ({ lastEventId }) => page.seenEvent(at, lastEventId));
  source.addEventListener("error", () => {
    if (source.readyState === 2) page.streamEnded(at);
  });
  return new Promise((resolve) => source.addEventListener("open", () => resolve()));
}
