/**
 * Writes clients/grpc-service-config.json, with which gRPC clients retry reads, but no other
 * methods. A method is a read if its `idempotency_level` in the proto is NO_SIDE_EFFECTS.
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
    // Never retried: the first attempt of a call that moves money may have been executed.
    { name: namesOf(false) },
  ],
  // Clients stop retrying while most retries fail.
  retryThrottling: { maxTokens: 10, tokenRatio: 0.1 },
};
// Formatted as biome formats it.
const text = JSON.stringify(config, null, 2).replace(
  /\[\s+("[A-Z_]+"),\s+("[A-Z_]+")\s+\]/,
  "[$1, $2]",
);
writeFileSync("clients/grpc-service-config.json", `${text}\n`);
