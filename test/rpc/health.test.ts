import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../src/gen/grpc/health/v1/health_pb.ts";
import { reportTo } from "../../src/report.ts";
import { until } from "../until.ts";
import { serviceNames, start } from "./start.ts";

/* `open-services.test.ts` has what each answers anybody, in every protocol. */
test("a watch reports NOT_SERVING once a drain is announced, and ends with it", async () => {
  await using started = await start();
  const client = createClient(Health, started.transport("grpc", "2"));
  const watch = client.watch({})[Symbol.asyncIterator]();
  const next = async () => (await watch.next()).value?.status;
  assert.equal(await next(), ServingStatus.SERVING);
  started.server.announceDrain();
  assert.equal(await next(), ServingStatus.NOT_SERVING);
  assert.equal((await client.check({})).status, ServingStatus.NOT_SERVING);
  const { statuses } = await client.list({});
  const told = Object.entries(statuses).map(([name, { status }]) => [name, status]);
  assert.deepEqual(
    Object.fromEntries(told),
    Object.fromEntries(["", ...serviceNames].map((name) => [name, ServingStatus.NOT_SERVING])),
  );

  const drained = started.server.drain();
  const end = ConnectError.from(await watch.next().catch((error: unknown) => error));
  assert.equal(end.code, Code.Unavailable);
  assert.equal(end.findDetails(ErrorInfoSchema)[0]?.reason, "SHUTTING_DOWN");
  await drained;
});

test("a watch ends by itself with UNAVAILABLE, and the next one is served", async () => {
  await using started = await start({}, { limits: { openStreamMs: 50 } });
  const client = createClient(Health, started.transport("grpc", "2"));
  for (let i = 0; i < 2; i++) {
    const watch = client.watch({})[Symbol.asyncIterator]();
    assert.equal((await watch.next()).value?.status, ServingStatus.SERVING);
    await assert.rejects(watch.next(), { code: Code.Unavailable });
  }
});

test("watches of all connections together may hold a tenth of the connections", async () => {
  const cuts: string[] = [];
  const report = reportTo({ cut: ({ limit }) => void cuts.push(limit) });
  await using started = await start({}, { limits: { maxConnections: 30 }, report });
  const watchOn = async () => {
    const client = createClient(Health, started.transport("grpc", "2"));
    const controller = new AbortController();
    const watch = client.watch({}, { signal: controller.signal })[Symbol.asyncIterator]();
    const first = await watch.next().catch((error: unknown) => ConnectError.from(error).code);
    return { first, watch, controller, client };
  };
  const opened = [await watchOn(), await watchOn(), await watchOn()];
  for (const { first } of opened) assert.ok(typeof first === "object" && !first.done);
  const refused = await watchOn();
  assert.equal(refused.first, Code.ResourceExhausted);
  assert.deepEqual(cuts, ["open_streams"]);
  assert.equal((await refused.client.check({})).status, ServingStatus.SERVING, "a check is served");
  const [left] = opened;
  left?.controller.abort();
  await left?.watch.next().catch(() => {});
  await until(async () => typeof (await watchOn()).first === "object");
});
