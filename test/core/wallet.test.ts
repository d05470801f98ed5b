import assert from "node:assert/strict";
import { test } from "node:test";
import { clone, create } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import { customerCases } from "../../src/core/customer.ts";
import { CustomerIdentitySchema } from "../../src/gen/payments/v1/customer_pb.ts";
import { type WalletItem, WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import {
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
} from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { callOf } from "./rig.ts";

const fullNumber = "4111111111111111";

/** One answer of the payments service that several callers share, as concurrent reads do. */
const shared: WalletItem = create(WalletItemSchema, {
  card: { fullNumber, mask: "411111******1111" },
});
const upstream = {
  findWalletItems: async () => [shared],
  getConfirmationStatus: async () => shared,
};
const { findWalletItems, getConfirmationStatus } = customerCases({
  upstreamOf: () => upstream,
} as never);

const customer = create(CustomerIdentitySchema, { externalId: "customer-1" });

test("only the caller with wallet:pan gets the card number of an answer that two callers share", async () => {
  const before = clone(WalletItemSchema, shared);
  const find = create(FindWalletItemsRequestSchema, { customer });
  const confirm = create(GetConfirmationStatusRequestSchema, {
    customer,
    ...{ optionId: "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01" },
  });
  for (const look of [
    async (call: Call) => (await findWalletItems(find, call))[0],
    (call: Call) => getConfirmationStatus(confirm, call),
  ]) {
    const [without, having] = await Promise.all([
      look(callOf(["wallet:read"])),
      look(callOf(["wallet:read", "wallet:pan"])),
    ]);
    assert.equal(without?.card?.fullNumber, undefined);
    assert.equal(without?.card?.mask, "411111******1111");
    assert.equal(having?.card?.fullNumber, fullNumber);
  }
  assert.deepEqual(shared, before);
});
