import { GatewayError } from "../errors.ts";
import type { Report } from "../report.ts";
import type { Permit, TokenBucket } from "./bucket.ts";

/** An account's bucket whose waits and refusals are reported. */
export function observedBucket(account: string, bucket: TokenBucket, report: Report): TokenBucket {
  return {
    status: () => bucket.status(),
    close: () => bucket.close(),
    async take(options) {
      const { priority, caller } = options;
      const startedMs = performance.now();
      const asked = { account, priority, caller };
      const given = (refused?: string) =>
        report("tokenGiven", { ...asked, waitedMs: performance.now() - startedMs, refused });
      report("tokenAsked", asked);
      let permit: Permit;
      try {
        permit = await bucket.take(options);
      } catch (error) {
        given(error instanceof GatewayError ? error.code : "INTERNAL");
        throw error;
      }
      given();
      return {
        observe: (answer) => permit.observe(answer),
        release: () => permit.release(),
        rejected(answer) {
          report("tokenRejected", { account });
          permit.rejected(answer);
        },
      };
    },
  };
}
