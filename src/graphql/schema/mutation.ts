import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import type { ObjectRef } from "@pothos/core";
import type { Call, Core } from "../../core/core.ts";
import { isMoneyRequest } from "../../model/money-methods.ts";
import { Loaders } from "../loaders.ts";
import { builder } from "./builder.ts";
import { failureCode, failureOf, failureTypes } from "./failures.ts";
import { toInputPath, toMessage } from "./input.ts";
import { inputType } from "./input-type.ts";

export interface MutationOptions<Desc extends DescMessage, Success extends object> {
  readonly description: string;
  /** The type of a successful result. */
  readonly success: ObjectRef<typeof builder.$inferSchemaTypes, Success>;
  run(core: Core, request: MessageShape<Desc>, call: Call): Promise<Success>;
}

/**
 * Adds the mutation of a method, with one `input` made from its request, whose result is the union `<Name>Result` of its success type
 * and the error types.
 */
export function mutation<Desc extends DescMessage, Success extends object>(
  method: DescMethodUnary<Desc>,
  { description, success, run }: MutationOptions<Desc, Success>,
): void {
  const { localName: name, input: request } = method;
  const isMoney = isMoneyRequest(request);
  const result = builder.unionType(`${method.name}Result`, {
    description: `What \`${name}\` answers: ${success.name}, or why not.`,
    types: [success, ...failureTypes] as (typeof failureTypes)[number][],
    resolveType: (value) => ("failureName" in value ? value.failureName : success.name),
  });
  builder.mutationField(name, (t) =>
    t.field({
      description,
      // Nullable, so that an error of one mutation does not discard the results of others.
      type: result,
      args: { input: t.arg({ type: inputType(request), required: true }) },
      resolve: async (_, { input }, context): Promise<never> => {
        // A mutation may have changed what was read before.
        context.loaders = new Loaders(context.core, context.call);
        context.operation.movesMoney ||= isMoney;
        try {
          const given = input as Readonly<Record<string, unknown>>;
          const message = toMessage(request, given);
          const { idempotencyKey: key } = given;
          const call = typeof key === "string" ? { inputIdempotencyKey: key } : {};
          return (await run(context.core, message, { ...context.call, ...call })) as never;
        } catch (error) {
          const failure = failureOf(error, (path) => toInputPath(request, path));
          if (failure) {
            context.operation.failed(failureCode(failure));
            context.operation.noteRetry(error);
            return failure as never;
          }
          throw error;
        }
      },
    }),
  );
}
