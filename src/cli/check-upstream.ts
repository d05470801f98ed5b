import { create } from "@bufbuild/protobuf";
import type { Config } from "../config/config.ts";
import { GatewayError } from "../errors.ts";
import { GetPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import { systemCode } from "../net/system-errors.ts";
import { QueuedBucket } from "../ratelimit/queued-bucket.ts";
import { createUpstream } from "../upstream/create-upstream.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import { type Finding, findings } from "./finding.ts";
import { faultOf, withoutUserinfo } from "./reach.ts";
import { printable } from "./terminal.ts";

const maxMs = 10_000;

/**
 * Looks up a payout that does not exist, as one merchant account. The read moves no money and shows
 * whether the service accepts the credentials. It costs one request of the account's budget, or up
 * to three if the service does not answer.
 */
export async function checkUpstream(
  account: MerchantAccount,
  { rateLimit, upstreamTimeoutMs }: Config,
  signal: AbortSignal,
): Promise<Finding> {
  const { ok, failed } = findings(`upstream ${account.name}`);
  const bucket = new QueuedBucket(rateLimit);
  const upstream = createUpstream({
    account,
    bucket,
    timeoutMs: Math.min(upstreamTimeoutMs, maxMs),
  });
  const url = withoutUserinfo(account.url);
  const taken = () => {
    const { limit } = bucket.status();
    return ok(`${url} accepts the credentials of ${account.login}; ${limit} requests a second`);
  };
  try {
    const request = create(GetPayoutRequestSchema, { externalId: "payments-gateway-check" });
    const payout = await upstream.getPayout(request, { signal });
    if (payout.externalId === undefined && payout.transactionId === undefined) {
      return failed(
        `${url} answers, but not as the payments service does`,
        "is UPSTREAM_URL its base address?",
      );
    }
    return taken();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    // On a read that is what refused credentials are, and nothing else.
    if (error.code === "INTERNAL") {
      return failed(
        `${url} refuses the credentials of ${account.login}`,
        account.name === "default"
          ? "correct UPSTREAM_LOGIN and UPSTREAM_PASSWORD (or the account in MERCHANTS_FILE)"
          : "correct the account's login and password in MERCHANTS_FILE",
      );
    }
    const code = error.details.upstream?.code;
    // Whatever the service says of a payout that does not exist, it knows who asks.
    if (code && !["UNAVAILABLE", "RESOURCE_EXHAUSTED"].includes(error.code)) return taken();
    if (code) return failed(`${url} fails: ${printable(error.message)}`, "ask the service");
    if (systemCode(error.cause) !== undefined) {
      return failed(
        `${url} cannot be reached: ${await faultOf(error.cause, url)}`,
        "check UPSTREAM_URL and the way there: DNS, firewall, certificate (NODE_EXTRA_CA_CERTS)",
      );
    }
    return failed(
      `${url}: ${printable(error.message)}`,
      "is UPSTREAM_URL the base address of the payments service?",
    );
  } finally {
    await upstream.close();
    await bucket.close();
  }
}
