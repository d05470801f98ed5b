import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type FollowOptions, followEvents } from "../../src/cli/follow.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";

const startedAtMs = 1_000_000;

function event(cursor: string, receivedAtMs = startedAtMs): Event {
  return create(EventSchema, { cursor, receivedAt: timestampFromMs(receivedAtMs) });
}

/** Streams that end one after the other: each is what it yields, then what it throws. */
async function follow(
  streams: readonly (readonly (Event | ConnectError)[])[],
  options: Partial<FollowOptions> = {},
) {
  const asked: (string | undefined)[] = [];
  const pauses: number[] = [];
  let gaps = 0;
  const end = new AbortController();
  async function* open(after: string | undefined) {
    const stream = streams[asked.length];
    asked.push(after);
    if (!stream) return end.abort();
    for (const step of stream) {
      if (step instanceof ConnectError) throw step;
      yield { event: step };
    }
  }
  const cursors: string[] = [];
  let error: unknown;
  try {
    const events = followEvents({
      open,
      startedAtMs,
      signal: end.signal,
      onPause: (_, pauseMs) => pauses.push(pauseMs),
      onGap: () => gaps++,
      random: () => 0,
      ...options,
    });
    for await (const { cursor } of events) cursors.push(cursor);
  } catch (thrown) {
    error = thrown;
  }
  return { cursors, asked, pauses, gaps, error };
}

const broken = new ConnectError("reset", Code.Unavailable);

test("goes on behind the last event that was taken", async () => {
  const { cursors, asked } = await follow([
    [event("1"), event("2"), broken],
    [event("3")],
    [broken],
  ]);
  assert.deepEqual(cursors, ["1", "2", "3"]);
  assert.deepEqual(asked, [undefined, "2", "3", "3"]);
});

test("a stream that breaks before its first event loses nothing", async () => {
  const before = event("1", startedAtMs - 1);
  const late = event("4", startedAtMs - 1);
  const { cursors, asked } = await follow([
    [broken],
    [before, broken],
    [event("2"), event("3"), late, broken],
  ]);
  // What was there before is passed over; once the start is reached, all is new.
  assert.deepEqual(cursors, ["2", "3", "4"]);
  assert.deepEqual(asked, [undefined, "earliest", "1", "4"]);
});

test("a gateway that shuts down tells where to go on", async () => {
  const shutdown = new ConnectError("shutting down", Code.Unavailable, undefined, [
    { desc: ErrorInfoSchema, value: { metadata: { resume_cursor: "7" } } },
    { desc: RetryInfoSchema, value: { retryDelay: { nanos: 20_000_000 } } },
  ]);
  const { asked, pauses } = await follow([[shutdown]]);
  assert.deepEqual(asked, [undefined, "7"]);
  assert.deepEqual(pauses, [20]);
});

test("a log that is lost is told of, and read from its beginning", async () => {
  const gone = new ConnectError("another log", Code.OutOfRange);
  const { cursors, asked, gaps } = await follow([[event("9"), broken], [gone], [event("1")]]);
  assert.deepEqual(cursors, ["9", "1"]);
  assert.deepEqual(asked, [undefined, "9", "earliest", "1"]);
  assert.equal(gaps, 1);
  // The caller's own cursor is the caller's to correct.
  const own = await follow([[gone]], { after: "5" });
  assert.equal(own.error, gone);
});

test("what another attempt would meet again ends it", async () => {
  for (const code of [Code.Unauthenticated, Code.PermissionDenied, Code.InvalidArgument]) {
    const refused = new ConnectError("no", code);
    const { error, asked } = await follow([[event("1"), refused]]);
    assert.equal(error, refused);
    assert.equal(asked.length, 1);
  }
});

test("pauses double up to their longest, and begin anew after an event", async () => {
  // The pauses are not waited for: what is asked for is 1/1,000 of the longest.
  const random = () => 0.001;
  const streams = [...Array(8).fill([broken]), [event("1"), broken]];
  const { pauses } = await follow(streams, { random });
  assert.deepEqual(pauses, [0.25, 0.5, 1, 2, 4, 8, 10, 10, 0.25]);
});
