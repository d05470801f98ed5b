import type { DescFile } from "@bufbuild/protobuf";
import { file_payments_v1_event_service } from "../gen/payments/v1/event_service_pb.ts";
import { file_payments_v1_operation_service } from "../gen/payments/v1/operation_service_pb.ts";
import { file_payments_v1_payment_service } from "../gen/payments/v1/payment_service_pb.ts";
import { file_payments_v1_payout_service } from "../gen/payments/v1/payout_service_pb.ts";
import { file_payments_v1_subscription_service } from "../gen/payments/v1/subscription_service_pb.ts";
import { file_payments_v1_wallet_service } from "../gen/payments/v1/wallet_service_pb.ts";

const serviceFiles = [
  file_payments_v1_payment_service,
  file_payments_v1_payout_service,
  file_payments_v1_wallet_service,
  file_payments_v1_subscription_service,
  file_payments_v1_operation_service,
  file_payments_v1_event_service,
];

/** The proto files of the contract: those of its services, and what they import of its package. */
export const contractFiles: readonly DescFile[] = withImports(serviceFiles).filter(
  ({ proto }) => proto.package === "payments.v1",
);

/** These files and all that they import, each once: a file before its imports. */
export function withImports(files: readonly DescFile[], found = new Set<DescFile>()): DescFile[] {
  for (const file of files) {
    if (found.has(file)) continue;
    found.add(file);
    withImports(file.dependencies, found);
  }
  return [...found];
}
