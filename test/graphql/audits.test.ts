import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { serverAudits } from "graphql-http";
import type { Gateway } from "../../src/app/gateway.ts";
import { startTestGateway } from "../start.ts";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway();
});
after(() => gateway.stop());

// Each audit calls `url` only when it runs, after the gateway has started.
for (const { id, name, fn } of serverAudits({ url: () => `${gateway.publicUrl}/graphql` })) {
  test(`graphql-http ${id}: ${name}`, async () => {
    const result = await fn();
    assert.equal(result.status, "ok", "reason" in result ? result.reason : "");
  });
}
