import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { errorOfAbort } from "../errors.ts";
import type { Cursor, EventLog } from "../events/log.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import {
  type ListEventsRequest,
  type ListEventsResponse,
  ListEventsResponseSchema,
} from "../gen/payments/v1/event_service_pb.ts";
import { kindOf } from "../kinds.ts";
import type { Call } from "./core.ts";
import { invalidFields } from "./validate.ts";

const defaultPageSize = 50;

/**
 * One page of the events of a payment or payout. A page token is the cursor of the last event of the
 * page before, so that what is written meanwhile shifts no page.
 */
export async function listEvents(
  log: EventLog,
  request: ListEventsRequest,
  call: Call,
): Promise<ListEventsResponse> {
  const size = request.pageSize || defaultPageSize;
  const place = request.pageToken === "" ? undefined : placeOf(request);
  const found = await (request.newestFirst ? newest : oldest)(log, request, call, place, size + 1);
  const events = found.slice(0, size);
  const last = found.length > size ? events.at(-1) : undefined;
  return create(ListEventsResponseSchema, {
    events,
    ...(last && { nextPageToken: tokenOf(request, last.cursor) }),
  });
}

type Page = (
  log: EventLog,
  request: ListEventsRequest,
  call: Call,
  place: Cursor | undefined,
  limit: number,
) => Promise<Event[]>;

const newest: Page = async (log, { kind, externalId }, { caller }, place, limit) => {
  const events = await log.history(caller.account, kindOf(kind), externalId, limit, place);
  return events.reverse();
};

const oldest: Page = async (log, { kind: number, externalId }, call, place, limit) => {
  const kind = kindOf(number);
  const { account } = call.caller;
  const [last] = await log.history(account, kind, externalId, 1);
  const found: Event[] = [];
  const gone = new AbortController();
  const signal = AbortSignal.any([call.signal, gone.signal]);
  const events = await log.read(account, { kind, externalId }, place ?? "earliest", { signal });
  try {
    if (!last || (place !== undefined && place >= last.cursor)) return found;
    // What comes after the list was asked for is for another page.
    for await (const event of events) {
      if (event.cursor <= last.cursor) found.push(event);
      if (event.cursor >= last.cursor || found.length === limit) return found;
    }
    throw errorOfAbort(signal);
  } finally {
    gone.abort();
    await events[Symbol.asyncIterator]().return?.();
  }
};

/** A token goes with its list: the same payment or payout, in the same order. */
function tokenOf({ kind, externalId, newestFirst }: ListEventsRequest, cursor: Cursor): string {
  const list = JSON.stringify([kind, externalId, newestFirst]);
  const digest = createHash("sha256").update(list).digest("base64url").slice(0, 8);
  return Buffer.from(`${digest}${cursor}`).toString("base64url");
}

/** @throws GatewayError INVALID_ARGUMENT for what is no token of this list */
function placeOf(request: ListEventsRequest): Cursor {
  const cursor = Buffer.from(request.pageToken, "base64url").toString().slice(8);
  if (/^[0-9a-f]{18}-[0-9a-f]{8}$/.test(cursor) && tokenOf(request, cursor) === request.pageToken) {
    return cursor;
  }
  throw invalidFields([{ path: "page_token", message: "is not a token of this list" }]);
}
