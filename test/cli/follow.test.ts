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

/** Follows these streams, one after the other. Each yields its events, then throws its error. */
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

test("a reopened stream starts after the last yielded event", async () => {
  const { cursors, asked } = await follow([
    [event("1"), event("2"), broken],
    [event("3")],
    [broken],
  ]);
  assert.deepEqual(cursors, ["1", "2", "3"]);
  assert.deepEqual(asked, [undefined, "2", "3", "3"]);
});

test("no event is lost when a stream breaks before its first event", async () => {
  const before = event("1", startedAtMs - 1);
  const late = event("4", startedAtMs - 1);
  const { cursors, asked } = await follow([
    [broken],
    [before, broken],
    [event("2"), event("3"), late, broken],
  ]);
  // Events from before the start are skipped. After the first later one, all are yielded.
  assert.deepEqual(cursors, ["2", "3", "4"]);
  assert.deepEqual(asked, [undefined, "earliest", "1", "4"]);
});

test("after a shutdown error, the stream resumes at the error's cursor after its delay", async () => {
  const shutdown = new ConnectError("shutting down", Code.Unavailable, undefined, [
    { desc: ErrorInfoSchema, value: { metadata: { resume_cursor: "7" } } },
    { desc: RetryInfoSchema, value: { retryDelay: { nanos: 20_000_000 } } },
  ]);
  const { asked, pauses } = await follow([[shutdown]]);
  assert.deepEqual(asked, [undefined, "7"]);
  assert.deepEqual(pauses, [20]);
});

test("a lost log is reported as a gap, and the new log is read from its beginning", async () => {
  const gone = new ConnectError("another log", Code.OutOfRange);
  const { cursors, asked, gaps } = await follow([[event("9"), broken], [gone], [event("1")]]);
  assert.deepEqual(cursors, ["9", "1"]);
  assert.deepEqual(asked, [undefined, "9", "earliest", "1"]);
  assert.equal(gaps, 1);
  // A cursor that the caller gave is not replaced: the caller has to correct it.
  const own = await follow([[gone]], { after: "5" });
  assert.equal(own.error, gone);
});

test("an error that a retry would meet again ends followEvents", async () => {
  for (const code of [Code.Unauthenticated, Code.PermissionDenied, Code.InvalidArgument]) {
    const refused = new ConnectError("no", code);
    const { error, asked } = await follow([[event("1"), refused]]);
    assert.equal(error, refused);
    assert.equal(asked.length, 1);
  }
});

test("pauses double up to the longest, and start again at the shortest after an event", async () => {
  // With this jitter, each pause is 1/1,000 of its maximum: the test takes milliseconds.
  const random = () => 0.001;
  const streams = [...Array(8).fill([broken]), [event("1"), broken]];
  const { pauses } = await follow(streams, { random });
  assert.deepEqual(pauses, [0.25, 0.5, 1, 2, 4, 8, 10, 10, 0.25]);
});
