import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { parse, validate } from "graphql";
import { firstDocuments } from "../../src/graphql/first-documents.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { newPage, withoutChromium } from "../chromium.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { type Served, serve } from "./serve.ts";

test("the documents that GraphiQL opens with are valid, and select state instead of status", () => {
  for (const { query } of firstDocuments) {
    assert.deepEqual(validate(schema, parse(query)), []);
    assert.match(query, /^ +state$/m, "is it paid? That is what state says, and no status");
    assert.doesNotMatch(query, /details \{[^}]*status/);
  }
});

test("GraphiQL's page is loaded only when a browser opens it", async (t) => {
  const loaded: string[] = [];
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      loaded.push(specifier);
      return next(specifier, context);
    },
  });
  t.after(() => hooks.deregister());
  const gateway = await serve(t, {}, { production: false });
  const page = async ({ url }: Served) =>
    (await fetch(url, { headers: { accept: "text/html,*/*;q=0.8" } })).text();
  await gateway.post({ query: "{ __typename }" });
  assert.doesNotMatch(await page(await serve(t)), /graphiql/i, "not in production");
  assert.ok(!loaded.includes("@graphql-yoga/render-graphiql"));
  assert.match(await page(gateway), /graphiql/i);
  assert.ok(loaded.includes("@graphql-yoga/render-graphiql"), "the control: it is, once opened");
});

test("GraphiQL opens with Pay, LookItUp and Watch, which run in this order and show something", {
  skip: withoutChromium,
}, async (t) => {
  const gateway = closing(t, await startTestGateway());
  const page = await newPage(t, { viewport: { width: 1_280, height: 800 } });
  await page.goto(`${gateway.publicUrl}/graphql`);
  await page.getByText("mutation Pay").first().waitFor();
  const tabs = await page.getByRole("tab").allInnerTexts();
  assert.deepEqual(
    tabs.map((text) => text.trim()).filter((text) => /Pay|LookItUp|Watch/.test(text)),
    ["Pay", "LookItUp", "Watch"],
  );
  assert.doesNotMatch(await page.locator("body").innerText(), /An example GraphQL query/);
  const shown = page.locator(".graphiql-response");
  for (const [tab, begins, answer] of [
    ["Pay", /mutation\s*Pay/, /"state":\s*"PAID"/],
    ["LookItUp", /query\s*LookItUp/, /"source":\s*"RESPONSE"/],
    ["Watch", /subscription\s*Watch/, /"operation":\s*"PAYMENT"/],
  ] as const) {
    // The tabs still move into their places: a click would hit where one was.
    await page.getByTitle(tab, { exact: true }).dispatchEvent("click");
    // GraphiQL runs what its editor has.
    await page.locator(".graphiql-query-editor").filter({ hasText: begins }).waitFor();
    const execute = page.getByRole("button", { name: /execute/i });
    await execute.click();
    await until(async () => {
      if (await shown.filter({ hasText: answer }).isVisible()) return true;
      // It finds out the new tab's operation a moment later, and refuses to run it until then. While
      // an operation runs, this button is another one.
      const isRefused = await shown.filter({ hasText: /Cannot\s+infer/ }).isVisible();
      if (isRefused && (await execute.isVisible())) await execute.click();
      return false;
    });
  }
});
