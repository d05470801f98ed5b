import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Scope } from "../../src/auth/caller.ts";
import type { Context } from "../../src/core/context.ts";
import type { Call } from "../../src/core/core.ts";
import { walletCases } from "../../src/core/wallet.ts";
import { WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import {
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
} from "../../src/gen/payments/v1/wallet_service_pb.ts";

const customer = { identity: { case: "externalId", value: "customer" } } as const;

const callOf = (...scopes: Scope[]): Call => ({
  caller: { name: "test", account: "default", scopes: new Set(["wallet:read", ...scopes]) },
  signal: new AbortController().signal,
  requestId: "r",
});

test("of two who share a read only the one with wallet:pan sees the full number", async () => {
  // As the client shares the answer of reads that are in flight together.
  const item = create(WalletItemSchema, { card: { fullNumber: "4111111111111111", mask: "4111" } });
  const shared = Promise.resolve([item]);
  const upstream = {
    findWalletItems: () => shared,
    getConfirmationStatus: async () => (await shared)[0],
  };
  const cases = walletCases({ account: () => ({ upstream }) } as unknown as Context);
  const find = create(FindWalletItemsRequestSchema, { customer });
  const status = create(GetConfirmationStatusRequestSchema, {
    ...{ customer, optionId: "5c9f2a31-7d40-4d8e-9b1a-0f6e2c3d4b5a" },
  });
  const reads = [
    async (call: Call) => (await cases.findWalletItems(find, call))[0],
    async (call: Call) => await cases.getConfirmationStatus(status, call),
  ];
  for (const read of reads) {
    const [less, more] = await Promise.all([read(callOf()), read(callOf("wallet:pan"))]);
    assert.deepEqual([less?.card?.fullNumber, less?.card?.mask], [undefined, "4111"]);
    assert.equal(more?.card?.fullNumber, "4111111111111111");
  }
});
