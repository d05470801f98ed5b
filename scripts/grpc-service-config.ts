/**
 * Writes clients/grpc-service-config.json, by which gRPC clients retry reads by themselves, and nothing
 * that changes anything: what the proto says of each method decides.
 */
import { writeFileSync } from "node:fs";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { services } from "../src/rpc/services/routes.ts";

const unary = services.flatMap(({ typeName, methods }) =>
  methods
    .filter(({ methodKind }) => methodKind === "unary")
    .map(({ name, idempotency }) => ({ service: typeName, method: name, idempotency })),
);
const { NO_SIDE_EFFECTS } = MethodOptions_IdempotencyLevel;
const namesOf = (isRead: boolean) =>
  unary
    .filter(({ idempotency }) => (idempotency === NO_SIDE_EFFECTS) === isRead)
    .map(({ service, method }) => ({ service, method }));

const config = {
  methodConfig: [
    {
      name: namesOf(true),
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: "0.2s",
        maxBackoff: "5s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
      },
    },
    // Never retried: a call that moves money may have been made.
    { name: namesOf(false) },
  ],
  // Retries stop while most of them fail.
  retryThrottling: { maxTokens: 10, tokenRatio: 0.1 },
};
// As the formatter has it.
const text = JSON.stringify(config, null, 2).replace(
  /\[\s+("[A-Z_]+"),\s+("[A-Z_]+")\s+\]/,
  "[$1, $2]",
);
writeFileSync("clients/grpc-service-config.json", `${text}\n`);
