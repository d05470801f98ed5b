import assert from "node:assert/strict";
import { test } from "node:test";
import { serverAudits } from "graphql-http";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";

const gateway = ofSuite(startTestGateway);

// Each audit calls `url` only when it runs, after the gateway has started.
for (const { id, name, fn } of serverAudits({ url: () => `${gateway.publicUrl}/graphql` })) {
  test(`graphql-http ${id}: ${name}`, async () => {
    const result = await fn();
    assert.equal(result.status, "ok", "reason" in result ? result.reason : "");
  });
}
