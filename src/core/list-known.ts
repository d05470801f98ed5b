import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import type { ListPaymentsRequest } from "../gen/payments/v1/payment_service_pb.ts";
import type { Known } from "../ledger/intents.ts";
import { passOver } from "../ledger/record.ts";
import type { Kind } from "../model/kinds.ts";
import type { Context } from "./context.ts";
import type { Call, Instant, Listing } from "./core.ts";
import { pageTokens } from "./page-token.ts";

const defaultPageSize = 50;
const maxPageSize = 100;

/** What the requests for lists of payments and of payouts have in common. */
type ListRequest = Omit<ListPaymentsRequest, "$typeName" | "$unknown" | "states"> & {
  readonly states: readonly number[];
};

interface Answer {
  readonly state: number;
  readonly needsOperator: boolean;
}

export interface ListOptions<Of extends Answer> {
  readonly kind: Kind;
  /** A state of the request as `Event.state` has it. */
  readonly stateOf: (state: number) => PaymentState;
  /** Undefined if nothing is known any more. */
  readonly answerOf: (known: Known) => Of | undefined;
}

/**
 * One page of the payments or payouts that the store knows. The place of each is when it was first
 * heard of, which never changes. What is told of it is read after the page: one that has left the
 * selection meanwhile is left out, and so is one whose record cannot be read, which the store reports.
 */
export async function listKnown<Of extends Answer>(
  { ledger }: Pick<Context, "ledger">,
  request: ListRequest,
  { caller: { account } }: Call,
  { kind, stateOf, answerOf }: ListOptions<Of>,
): Promise<Listing<Of>> {
  const { needsOperator, newestFirst, pageToken: text } = request;
  const { tokenOf, placeOf } = pageTokens(["known", kind, newestFirst], /^\d{1,16}$/);
  const named = placeOf(text, "page_token");
  const place = named === undefined ? undefined : Number(named);
  const from = micros(request.firstSeenAfter, Math.floor) ?? 0;
  const to = micros(request.firstSeenBefore, Math.ceil) ?? Number.MAX_SAFE_INTEGER;
  const [after, before] = newestFirst
    ? [from, Math.min(to, place ?? to)]
    : [Math.max(from, place ?? from), to];
  const states = request.states.map(stateOf);
  const size = Math.min(request.pageSize || defaultPageSize, maxPageSize);
  const selection = { kind, states, needsOperator, newestFirst, after, before };
  const found = await ledger.list(account, selection, size + 1);
  const edges = await Promise.all(
    found.slice(0, size).map(async ({ externalId, firstSeen }) => {
      const known = await ledger.known(account, kind, externalId).catch(passOver);
      const node = known?.firstSeen === firstSeen ? answerOf(known) : undefined;
      if (!known || !node || !isSelected(request, node)) return [];
      const cursor = tokenOf(`${firstSeen}`);
      // The process that stores an event knows the store's clock only nearly.
      const updated = Math.max(known.updatedMs * 1_000, firstSeen);
      const times = { firstSeenAt: instantOf(firstSeen), updatedAt: instantOf(updated) };
      return [{ cursor, node, externalId, ...times }];
    }),
  );
  const last = found[size - 1];
  const hasNextPage = found.length > size;
  return {
    edges: edges.flat(),
    ...{ hasNextPage, hasPreviousPage: text !== "" },
    endCursor: hasNextPage && last ? tokenOf(`${last.firstSeen}`) : undefined,
  };
}

function isSelected({ states, needsOperator }: ListRequest, answer: Answer): boolean {
  if (needsOperator !== undefined && needsOperator !== answer.needsOperator) return false;
  return states.length === 0 || states.includes(answer.state);
}

function micros(at: Timestamp | undefined, round: (micros: number) => number): number | undefined {
  return at && Number(at.seconds) * 1_000_000 + round(at.nanos / 1_000);
}

function instantOf(micros: number): Instant {
  const nanos = (micros % 1_000_000) * 1_000;
  return { seconds: BigInt(Math.floor(micros / 1_000_000)), nanos };
}
