import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { listKnown } from "../../src/core/list-known.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { ListPaymentsRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { UnreadableRecord } from "../../src/ledger/record.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { payment } from "../ledger/entries.ts";
import { overridden } from "../overridden.ts";
import { account, callOf } from "./rig.ts";

test("a record that cannot be read is missing in a list, and keeps nothing else out of it", async () => {
  const log = createMemoryLedger({ retentionMs: 60_000, giveUpMs: 60_000 });
  for (const externalId of ["first", "damaged", "last"]) {
    await log.append(account, payment({ externalId, paymentId: externalId }));
  }
  const ledger = overridden(log, {
    async known(of, kind, externalId) {
      if (externalId === "damaged") throw new UnreadableRecord(`payment:${externalId}`);
      return log.known(of, kind, externalId);
    },
  });
  const page = (pageToken = "") =>
    listKnown({ ledger }, create(ListPaymentsRequestSchema, { pageSize: 2, pageToken }), callOf(), {
      kind: EventKind.PAYMENT,
      stateOf: () => PaymentState.PENDING,
      answerOf: () => ({ state: 0, needsOperator: false }),
    });
  const names = ({ edges }: Awaited<ReturnType<typeof page>>) =>
    edges.map(({ externalId }) => externalId);
  const first = await page();
  assert.deepEqual(names(first), ["first"]);
  assert.deepEqual(names(await page(first.endCursor)), ["last"]);
});
