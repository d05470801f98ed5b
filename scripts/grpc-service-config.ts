/**
 * Writes clients/grpc-service-config.json, with which gRPC clients retry reads, but no other
 * methods. A method is a read if its `idempotency_level` in the proto is NO_SIDE_EFFECTS, or its
 * call of the payments service is a GET: a read that takes a customer's token has no GET itself.
 */
import { writeFileSync } from "node:fs";
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { endpoint } from "../src/gen/payments/v1/options_pb.ts";
import { services } from "../src/rpc/services/routes.ts";

const { NO_SIDE_EFFECTS } = MethodOptions_IdempotencyLevel;
const isRead = (method: DescMethod) =>
  method.idempotency === NO_SIDE_EFFECTS || getOption(method, endpoint).startsWith("GET ");
const unary = services
  .flatMap(({ methods }) => methods)
  .filter(({ methodKind }) => methodKind === "unary");
const namesOf = (reads: boolean) =>
  unary
    .filter((method) => isRead(method) === reads)
    .map(({ parent, name }) => ({ service: parent.typeName, method: name }));

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
