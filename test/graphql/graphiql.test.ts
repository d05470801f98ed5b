import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { parse, validate } from "graphql";
import { GatewayError } from "../../src/errors.ts";
import { firstDocuments } from "../../src/graphql/first-documents.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { newPage, withoutChromium } from "../chromium.ts";
import { timeoutMs } from "../until.ts";
import { serve } from "./serve.ts";

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
  await gateway.post({ query: "{ __typename }" });
  assert.ok(!loaded.includes("@graphql-yoga/render-graphiql"));
  const page = await fetch(gateway.url, { headers: { accept: "text/html" } });
  assert.match(await page.text(), /graphiql/i);
  assert.ok(loaded.includes("@graphql-yoga/render-graphiql"), "the control: it is, once opened");
});

test("GraphiQL opens with the first query, which runs, and the first subscription", {
  skip: withoutChromium,
  timeout: 4 * timeoutMs,
}, async (t) => {
  const gateway = await serve(
    t,
    {
      getPayment: async () => {
        throw new GatewayError("NOT_FOUND", "no such payment");
      },
    },
    { production: false },
  );
  const page = await newPage(t, { viewport: { width: 1_280, height: 800 } });
  page.setDefaultTimeout(2 * timeoutMs);
  await page.goto(gateway.url);
  await page.getByText("query FirstLook").first().waitFor();
  const tabs = await page.getByRole("tab").allInnerTexts();
  assert.deepEqual(
    tabs.map((text) => text.trim()).filter((text) => /FirstLook|Live/.test(text)),
    ["FirstLook", "Live"],
  );
  assert.doesNotMatch(await page.locator("body").innerText(), /An example GraphQL query/);
  const answered = page.waitForResponse((response) =>
    Boolean(response.request().postData()?.includes("query FirstLook")),
  );
  await page.getByRole("button", { name: /execute/i }).click();
  assert.deepEqual(await (await answered).json(), {
    data: { rateLimit: { limit: 10, remaining: 7, resetSeconds: 1 }, payment: null },
  });
  await page.getByRole("tab", { name: "Live" }).click();
  await page.getByText("subscription Live").first().waitFor();
});
