import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { type TestContext, test } from "node:test";
import { loadPage } from "../../src/admin/page.ts";
import { type AdminOptions, createAdminServer } from "../../src/admin/server.ts";
import { GatewayError } from "../../src/errors.ts";
import { ask } from "../ask.ts";
import { recordCuts } from "../hardening/cuts.ts";
import { listen } from "../listen.ts";
import { openIntake } from "../net/open-intake.ts";

async function serve(t: TestContext, about: Partial<AdminOptions> = {}): Promise<string> {
  const server = createAdminServer({
    open: { "/healthz": () => ({ status: 200, body: {} }) },
    operatorOf: async () => ({ name: "anonymous", accounts: ["default"] }),
    routes: { "GET /dead-letters": async () => ({ status: 200, body: {} }) },
    graphql: () => {},
    onFailure: () => {},
    healthOnly: false,
    counts: {},
    intake: openIntake(),
    onCut: () => {},
    ...about,
  });
  t.after(() => server.close());
  return `http://127.0.0.1:${await listen(server)}`;
}

test("a console page that was not built is 404 with a hint, and other paths work", async (t) => {
  const page = loadPage(new URL("./no-such-page.html", import.meta.url));
  const url = await serve(t, { open: { "/": () => page } });
  const answer = await fetch(url);
  assert.equal(answer.status, 404);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/plain/);
  assert.match(await answer.text(), /was not built\. Run `npm run build:console`/);
  assert.equal((await fetch(`${url}/dead-letters`)).status, 200);
});

test("an unexpected failure is reported to the log, not to the operator", async (t) => {
  const failures: unknown[] = [];
  const url = await serve(t, {
    operatorOf: () => Promise.reject(new Error("the password is swordfish")),
    onFailure: (error) => failures.push(error),
  });
  const answer = await fetch(`${url}/api/session`);
  assert.equal(answer.status, 500);
  assert.deepEqual(await answer.json(), { error: "internal error" });
  assert.equal(failures.length, 1);
});

test("a failure that the gateway has words for is told to the operator, too", async (t) => {
  const failures: unknown[] = [];
  const damaged = new GatewayError("INTERNAL", "the stored record of payment:x cannot be read");
  const url = await serve(t, {
    routes: { "GET /api/history": () => Promise.reject(damaged) },
    onFailure: (error) => failures.push(error),
  });
  const answer = await fetch(`${url}/api/history`);
  assert.equal(answer.status, 500);
  assert.deepEqual(await answer.json(), { error: damaged.message });
  assert.deepEqual(failures, [damaged]);
});

test("an unreachable store is 503, an unknown path 404", async (t) => {
  const away = new GatewayError("UNAVAILABLE", "the store is out of reach");
  const url = await serve(t, { operatorOf: () => Promise.reject(away) });
  const answer = await fetch(`${url}/dead-letters`);
  assert.equal(answer.status, 503);
  assert.deepEqual(await answer.json(), { error: "the store is out of reach" });
  const there = await serve(t);
  for (const path of ["/%zz", "/dead-letters/%zz/x", "/api/none", "/graphqlx", "/api"]) {
    assert.equal((await fetch(there + path)).status, 404, path);
  }
});

test("a path that is read as another one than it has is refused", async (t) => {
  const url = new URL(await serve(t));
  const statusOf = async (path: string) => (await ask(url.origin, { path })).status;
  for (const path of [
    "/metrics/../dead-letters",
    "/metrics/..%2fdead-letters/../../dead-letters",
    "/metrics/%2e%2E/dead-letters",
    "/healthz/.%2e/graphql",
    "/metrics\\..\\dead-letters",
    "/./dead-letters",
    "//metrics/dead-letters",
    "/dead-letters#/../metrics",
    `http://${url.host}/metrics/../dead-letters`,
  ]) {
    assert.equal(await statusOf(path), 400, path);
  }
  for (const path of [
    "/dead-letters",
    "/dead-letters?order=newest&cursor=",
    `http://${url.host}/dead-letters?limit=1`,
    "/healthz?..",
  ]) {
    assert.equal(await statusOf(path), 200, path);
  }
  assert.equal(await statusOf("/dead-letters/a%2F..%2Fb/x"), 404);
});

test("a route gets what its path holds; another method is told which are taken", async (t) => {
  const url = await serve(t, {
    routes: {
      "GET /dead-letters/{account}/{id}": ({ variables }) => ({ status: 200, body: variables }),
      "DELETE /dead-letters/{account}/{id}": () => ({ status: 204 }),
      "POST /dead-letters/{account}/{id}/replay": () => ({ status: 422, body: {} }),
    },
  });
  const letter = `${url}/dead-letters/a%2Fb/x.y`;
  const found = await fetch(letter);
  assert.deepEqual([found.status, await found.json()], [200, ["a/b", "x.y"]]);
  assert.equal((await fetch(letter, { method: "DELETE" })).status, 204);
  const headers = { "content-type": "application/json" };
  for (const [path, method, status, allow] of [
    [letter, "POST", 405, "GET, HEAD, DELETE"],
    [`${letter}/replay`, "POST", 422, null],
    [`${letter}/replay`, "GET", 405, "POST"],
    [`${letter}/replay/x`, "POST", 404, null],
    [`${url}/dead-letters/%zz/x`, "GET", 404, null],
  ] as const) {
    const answer = await fetch(path, { method, headers });
    assert.deepEqual([answer.status, answer.headers.get("allow")], [status, allow], path);
  }
});

test("a body of too many small chunks is cut, one of too many bytes refused", async (t) => {
  const { cuts, cut, onCut } = recordCuts();
  const orders: unknown[] = [];
  const routes: AdminOptions["routes"] = {
    "POST /api/sandbox/payments": async ({ body }) => ({
      status: 200,
      body: orders.push(await body()),
    }),
  };
  const url = await serve(t, { routes, onCut });
  const post = (chunks: number, chunkBytes = 1) => {
    const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
    const sent = request(`${url}/api/sandbox/payments`, { method: "POST", headers });
    const order = { scenario: "a", amount: "1", currency: "UAH", externalId: "e", by: "card" };
    sent.write(JSON.stringify(order));
    for (let i = 0; i < chunks; i++) sent.write(" ".repeat(chunkBytes));
    sent.end();
    return once(sent, "response");
  };
  const statusOf = async (chunks: number, chunkBytes?: number) => {
    const [answered] = await post(chunks, chunkBytes);
    answered.resume();
    return answered.statusCode;
  };
  assert.equal(await statusOf(100), 200);
  assert.equal(await statusOf(40, 400), 200);
  assert.equal(orders.length, 2);
  assert.equal(await statusOf(41, 400), 413);
  assert.deepEqual(cuts, []);
  await assert.rejects(post(2_000));
  await cut("small_pieces");
  assert.equal(orders.length, 2);
});
