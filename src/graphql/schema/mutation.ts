import type { MessageShape } from "@bufbuild/protobuf";
import type { ObjectRef } from "@pothos/core";
import { type Core, type Methods, methods } from "../../core/core.ts";
import { isMoneyRequest } from "../../model/money-methods.ts";
import { Loaders } from "../loaders.ts";
import { builder } from "./builder.ts";
import { failureCode, failureOf, failureTypes } from "./failures.ts";
import { toInputPath, toMessage } from "./input.ts";
import { inputType } from "./input-type.ts";
import { describe } from "./message-type.ts";

/** The methods whose use case is answered at once. */
type Unary = {
  [Name in keyof Methods]: Methods[Name]["methodKind"] extends "unary" ? Name : never;
}[keyof Methods];

type Request<Name extends Unary> = MessageShape<Methods[Name]["input"]>;

/**
 * Adds the mutation of a method, with one `input` made from its request, whose result is the union
 * `<Name>Result` of its success type and the error types.
 * @param show makes the success of what the core answers. Default: that itself
 */
export function mutation<Name extends Unary, Success extends object>(
  name: Name,
  success: ObjectRef<typeof builder.$inferSchemaTypes, Success>,
  show = (answer: Awaited<ReturnType<Core[Name]>>, _: Request<Name>) =>
    answer as unknown as Success,
): void {
  const method = methods[name];
  const request: Methods[Name]["input"] = method.input;
  const isMoney = isMoneyRequest(request);
  const result = builder.unionType(`${method.name}Result`, {
    description: `What \`${name}\` answers: ${success.name}, or why not.`,
    types: [success, ...failureTypes] as (typeof failureTypes)[number][],
    resolveType: (value) => ("failureName" in value ? value.failureName : success.name),
  });
  builder.mutationField(name, (t) =>
    t.field({
      description: describe(method) + (isMoney ? " `idempotencyKey` makes a repeat safe." : ""),
      // Nullable, so that an error of one mutation does not discard the results of others.
      type: result,
      args: { input: t.arg({ type: inputType(request), required: true }) },
      resolve: async (_, { input }, context): Promise<never> => {
        // A mutation may have changed what was read before.
        context.loaders = new Loaders(context.core, context.call);
        context.operation.movesMoney ||= isMoney;
        try {
          const given = input as Readonly<Record<string, unknown>>;
          const message = toMessage(request, given) as Request<Name>;
          const { idempotencyKey: key } = given;
          const call = typeof key === "string" ? { inputIdempotencyKey: key } : {};
          const answer = await context.core[name](message as never, { ...context.call, ...call });
          return show(answer as Awaited<ReturnType<Core[Name]>>, message) as never;
        } catch (error) {
          const failure = failureOf(error, (path) => toInputPath(request, path));
          if (!failure) throw error;
          context.operation.failed(failureCode(failure));
          context.operation.noteRetry(error);
          return failure as never;
        }
      },
    }),
  );
}
