import { OperationDetailsSchema, OperationSchema } from "../../gen/payments/v1/operation_pb.ts";
import { builder } from "./builder.ts";
import { messageType } from "./message-type.ts";

messageType(OperationDetailsSchema, { scalars: { amount: "Decimal" } });
export const Operation = messageType(OperationSchema);

builder.queryField("operation", (t) =>
  t.field({
    description: "One operation of an alternative payment, read from the payments service.",
    type: Operation,
    args: {
      externalId: t.arg.id({ description: "The payment's externalId.", required: true }),
      operationId: t.arg.id({
        description: "The operation's id, from the details of the payment.",
        required: true,
      }),
    },
    resolve: (_, { externalId, operationId }, { loaders }) =>
      loaders.operation(externalId, operationId),
  }),
);
