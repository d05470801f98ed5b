import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sendCallback } from "../gateway/callers.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { root } from "./markdown.ts";

const pages = ["docs/operations.md", "SECURITY.md", "deploy/prometheus/alerts.yaml"];

/** Requests to the admin listener that the pages tell operators to send. */
const shown = pages.flatMap((page) =>
  [
    ...readFileSync(join(root, page), "utf8").matchAll(
      /\b(GET|POST|DELETE) (\/(?:dead-letters|healthz|readyz|metrics)[\w{}/-]*)/g,
    ),
  ].map(([, method = "", path = ""]) => ({ page, method, path })),
);

test("the admin listener answers the requests that the pages tell operators to send", async (t) => {
  assert.ok(shown.length >= 8, `${shown.length} requests`);
  const gateway = closing(t, await startTestGateway());
  for (const { page, method, path } of shown) {
    await sendCallback(gateway, { "nobody understands": path });
    const list = await fetch(`${gateway.adminUrl}/dead-letters`);
    const { dead_letters } = (await list.json()) as { dead_letters: { id: string }[] };
    const filledIn = path
      .replace("{account}", "default")
      .replace("{id}", dead_letters[0]?.id ?? "none");
    const answer = await fetch(gateway.adminUrl + filledIn, {
      method,
      headers: { "content-type": "application/json" },
    });
    await answer.text();
    // 422: the replayed callback is still not understood.
    const wanted = method === "POST" ? 422 : method === "DELETE" ? 204 : 200;
    assert.equal(answer.status, wanted, `${page}: ${method} ${path}`);
  }
});
