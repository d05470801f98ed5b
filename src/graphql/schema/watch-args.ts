import type { KindName } from "../../model/kinds.ts";
import type { Context } from "../context.ts";
import type { builder } from "./builder.ts";

type SubscriptionFieldBuilder = Parameters<Parameters<typeof builder.subscriptionField>[1]>[0];

/** The arguments of `paymentUpdated` and `payoutUpdated`. */
export function watchArgs(t: SubscriptionFieldBuilder, what: KindName) {
  return {
    externalId: t.arg.id({
      description: `The ${what}'s externalId. It need not exist yet.`,
      required: true,
    }),
    after: t.arg.string({
      description:
        "Go on behind the event with this cursor; `earliest` begins with the oldest event that is " +
        "kept. The header `Last-Event-ID`, which an `EventSource` " +
        "sends by itself when it connects again, goes before it.",
    }),
    untilFinal: t.arg.boolean({
      description:
        "End the stream after the first event with `final: true` of an operation that pays, once no " +
        "call for the externalId is open, and after a `callOutcome` of NOT_DONE or NEEDS_OPERATOR. A " +
        "refund, cancellation or look-up does not end it.",
      defaultValue: false,
    }),
  };
}

/** These arguments as fields of a watch request. */
export function watchInit(
  args: {
    externalId: string;
    after?: string | null | undefined;
    untilFinal?: boolean | null | undefined;
  },
  context: Context,
) {
  return {
    externalId: args.externalId,
    untilFinal: args.untilFinal ?? false,
    ...startInit(args, context),
  };
}

/** The start of a watch for its request, which takes `earliest` as `fromStart`, not as a cursor. */
export function startInit(args: After, context: Pick<Context, "live">) {
  const init = afterInit(args, context);
  const isFromStart = init.afterCursor === "earliest" && context.live.lastEventId === undefined;
  return isFromStart ? { fromStart: true } : init;
}

/** The cursor that a stream resumes from: the header `Last-Event-ID`, else the argument `after`. */
export function afterInit(
  { after }: After,
  { live }: Pick<Context, "live">,
): {
  readonly afterCursor?: string;
} {
  const afterCursor = live.lastEventId ?? after ?? undefined;
  return afterCursor === undefined ? {} : { afterCursor };
}

interface After {
  readonly after?: string | null | undefined;
}
