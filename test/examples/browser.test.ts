import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { build } from "esbuild";
import { newPage, withoutChromium } from "../chromium.ts";
import { serve } from "../listen.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";

const example = new URL("../../examples/browser/", import.meta.url).pathname;

const name = "the browser example pays with typed hooks and shows the result live";
test(name, { skip: withoutChromium }, async (t) => {
  const { outputFiles } = await build({
    entryPoints: [`${example}main.tsx`],
    bundle: true,
    format: "esm",
    jsx: "automatic",
    write: false,
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "silent",
  });
  const script = outputFiles[0]?.text;
  assert.ok(script);
  const page = await readFile(`${example}index.html`);
  const shop = createServer((request, response) => {
    const isScript = request.url === "/main.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : page);
  });
  const origin = await serve(t, shop);
  // The page has another origin than the gateway, like a shop's page.
  const tab = await newPage(t);
  const gateway = closing(t, await startTestGateway({ CORS_ORIGINS: origin }));

  await tab.goto(`${origin}/?gateway=${encodeURIComponent(gateway.publicUrl)}`);
  const paying = tab.waitForRequest((request) => /mutation Pay\b/.test(request.postData() ?? ""));
  await tab.getByRole("button", { name: "Pay with an empty card" }).click();
  const { variables } = (await paying).postDataJSON();
  assert.equal(variables.input.waitUntil, "ACTION", "the answer tells what to do next");
  await tab.getByText("Declined: insufficient_funds").waitFor();
  await tab.getByText("live: failed").waitFor();
  await tab.getByRole("button", { name: "Pay with a blocked card" }).click();
  await tab.getByText("Declined: transaction_declined").waitFor();
  await tab.getByRole("button", { name: "Pay", exact: true }).click();
  await tab.getByText("Thank you").waitFor();
  await tab.getByText("live: paid").waitFor();
});
