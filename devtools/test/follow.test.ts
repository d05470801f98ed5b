import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { type FollowOptions, followEvents } from "../follow.ts";

function event(cursor: string): Event {
  return create(EventSchema, { cursor });
}

/**
 * Follows these streams, one after the other. Each receives its headers, yields its events, then
 * throws its error.
 */
async function follow(
  streams: readonly (readonly (Headers | Event | ConnectError)[])[],
  options: Partial<FollowOptions> = {},
  jitter = 0,
) {
  const random = mock.method(Math, "random", () => jitter);
  const asked: (string | undefined)[] = [];
  const pauses: number[] = [];
  let gaps = 0;
  const end = new AbortController();
  async function* open(
    after: string | undefined,
    { onHeader }: Parameters<FollowOptions["open"]>[1],
  ) {
    const stream = streams[asked.length];
    asked.push(after);
    if (!stream) return end.abort();
    for (const step of stream) {
      if (step instanceof ConnectError) throw step;
      if (step instanceof Headers) onHeader(step);
      else yield { event: step };
    }
  }
  const cursors: string[] = [];
  let error: unknown;
  try {
    const events = followEvents({
      open,
      signal: end.signal,
      onPause: (_, pauseMs) => pauses.push(pauseMs),
      onGap: () => gaps++,
      ...options,
    });
    for await (const { cursor } of events) cursors.push(cursor);
  } catch (thrown) {
    error = thrown;
  } finally {
    random.mock.restore();
  }
  return { cursors, asked, pauses, gaps, error };
}

const broken = new ConnectError("reset", Code.Unavailable);

test("a stream that breaks before its first event is reopened where it started", async () => {
  const startsAt = (cursor: string) => new Headers({ "x-start-cursor": cursor });
  const { cursors, asked } = await follow([
    [broken],
    [startsAt("5"), broken],
    [startsAt("9"), event("6"), broken],
  ]);
  assert.deepEqual(cursors, ["6"]);
  // A stream that never began has no start.
  assert.deepEqual(asked, [undefined, undefined, "5", "6"]);
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
  const streams = [...Array(8).fill([broken]), [event("1"), broken]];
  const { pauses } = await follow(streams, {}, 0.001);
  assert.deepEqual(pauses, [0.25, 0.5, 1, 2, 4, 8, 10, 10, 0.25]);
});
