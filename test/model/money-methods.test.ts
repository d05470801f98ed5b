import assert from "node:assert/strict";
import { test } from "node:test";
import { getOption } from "@bufbuild/protobuf";
import { moves_money } from "../../src/gen/payments/v1/options_pb.ts";
import { moneyMethods } from "../../src/model/money-methods.ts";
import { services } from "../../src/rpc/services/routes.ts";

test("the calls that move money are those that the proto marks", () => {
  const marked = services
    .flatMap(({ methods }) => methods)
    .filter((method) => getOption(method, moves_money));
  assert.deepEqual(
    new Set(Object.values(moneyMethods).map(({ method }) => method)),
    new Set(marked),
  );
  for (const [name, { method }] of Object.entries(moneyMethods)) assert.equal(method.name, name);
});
