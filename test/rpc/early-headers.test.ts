import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { start, wires } from "./start.ts";

/** A stream that opens when told, yields one event when told, and then fails. */
function scripted() {
  const open = Promise.withResolvers<void>();
  const yields = Promise.withResolvers<void>();
  return {
    open: open.resolve,
    yields: yields.resolve,
    async *streamEvents(_request: unknown, call: Call): AsyncGenerator<Event> {
      await open.promise;
      call.onOpen?.("c0");
      await yields.promise;
      yield create(EventSchema, { cursor: "c1" });
      throw new GatewayError("UNAVAILABLE", "shutting down", { resumeCursor: "c1" });
    },
  };
}

for (const { protocol, httpVersion, name } of wires) {
  test(`headers are sent when the stream has opened, before its first event, by ${name}`, async () => {
    const script = scripted();
    await using started = await start({ streamEvents: script.streamEvents });
    const client = createClient(EventService, started.transport(protocol, httpVersion));
    const header = Promise.withResolvers<Headers>();
    const events = client.streamEvents({}, { onHeader: header.resolve })[Symbol.asyncIterator]();
    const first = events.next();
    script.open();
    // The headers arrive alone, since no event has been yielded yet.
    assert.equal((await header.promise).get("x-ratelimit-limit"), "10");
    assert.ok((await header.promise).has("x-request-id"));
    assert.equal((await header.promise).get("x-start-cursor"), "c0");
    script.yields();
    assert.equal((await first).value?.event?.cursor, "c1");
    await assert.rejects(events.next(), (error) => {
      assert.ok(error instanceof ConnectError);
      assert.equal(error.code, Code.Unavailable);
      assert.equal(error.metadata.get("x-resume-cursor"), "c1");
      return true;
    });
  });
}

test("headers are sent with the first event if the core does not report that the stream has opened", async () => {
  const script = scripted();
  await using started = await start({
    streamEvents: (request, { onOpen: _, ...call }) => script.streamEvents(request, call),
  });
  const client = createClient(EventService, started.transport("grpc", "2"));
  let yielded = false;
  const header = Promise.withResolvers<boolean>();
  const events = client
    .streamEvents({}, { onHeader: () => header.resolve(yielded) })
    [Symbol.asyncIterator]();
  const first = events.next();
  script.open();
  // Another call on the same connection: headers sent before it would have arrived by its end.
  await client.createWatchToken({}).catch(() => {});
  yielded = true;
  script.yields();
  assert.equal(await header.promise, true);
  await first;
});
