import { attemptsOf } from "../ledger/ledger.ts";
import { ApiError } from "./api-error.ts";
import { requiredQuery } from "./fields.ts";
import { json, type Route } from "./http.ts";
import type { Parts } from "./parts.ts";
import { operationBody } from "./payment-view.ts";

/** GET alternative-payments/v1/info/operation (spec, Alternative payments). */
export function createOperationRoute({ ledger, baseUrl }: Parts): Route {
  return {
    method: "GET",
    path: "/api/alternative-payments/v1/info/operation",
    handle({ query }) {
      const externalId = requiredQuery(query, "external_id");
      const operationId = requiredQuery(query, "operation_id");
      for (const payment of attemptsOf(ledger, externalId)) {
        const found = payment.operations.find((operation) => operation.operationId === operationId);
        if (found) return json(operationBody(payment, found, baseUrl));
      }
      throw new ApiError("transaction_not_found", { param: "operation_id" });
    },
  };
}
