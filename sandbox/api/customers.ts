import type { IncomingHttpHeaders } from "node:http";
import { ApiError, invalid } from "./api-error.ts";
import { isUuid } from "./fields.ts";
import type { SandboxRequest } from "./http.ts";

/** The customer of a call. */
export type CustomerIdentity =
  | { readonly by: "external_id"; readonly externalId: string }
  | { readonly by: "rid"; readonly rid: string }
  /** A token with authorization_flow=processing: acts for every customer. */
  | { readonly by: "processing" };

/**
 * The `external_id` of a wallet call's customer: from `X-CUSTOMER-AUTH`, else from the query.
 * @throws ApiError if neither is given or the token is invalid.
 */
export function walletCustomer({ headers, query }: SandboxRequest): string {
  const identity = customerOfToken(headers);
  if (identity?.by === "external_id") return identity.externalId;
  const externalId = query.get("external_id");
  if (externalId) return externalId;
  throw new ApiError("customer_id_not_passed", { param: "external_id" });
}

/** The customer of a subscription call: from the RID, else the token, else the query. */
export function subscriptionCustomer({
  headers,
  query,
}: SandboxRequest): CustomerIdentity | undefined {
  const rid = headers["x-customer-rid"];
  if (typeof rid === "string") {
    if (!isUuid.test(rid)) throw invalid("X-CUSTOMER-RID", "must be a uuid");
    return { by: "rid", rid: rid.toLowerCase() };
  }
  const identity = customerOfToken(headers);
  if (identity) return identity;
  const externalId = query.get("external_id");
  return externalId ? { by: "external_id", externalId } : undefined;
}

/**
 * Reads the customer's JWT. The spec does not show its issuer and signature, so the sandbox accepts
 * any signature and must never protect anything real.
 */
function customerOfToken(headers: IncomingHttpHeaders): CustomerIdentity | undefined {
  const token = headers["x-customer-auth"];
  if (typeof token !== "string") return undefined;
  const claims = claimsOf(token);
  const expired = typeof claims?.exp === "number" && claims.exp * 1_000 <= Date.now();
  if (claims && !expired) {
    if (claims.authorization_flow === "processing") return { by: "processing" };
    const externalId = claims.external_id ?? claims.customer_external_id ?? claims.sub;
    if (typeof externalId === "string" && externalId) return { by: "external_id", externalId };
  }
  throw new ApiError("customer_auth_token_expired_or_invalid", { param: "X-CUSTOMER-AUTH" });
}

function claimsOf(token: string): Record<string, unknown> | undefined {
  const parts = token.split(".");
  if (parts.length !== 3) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString());
    return typeof claims === "object" && claims !== null ? { ...claims } : undefined;
  } catch {
    return undefined;
  }
}
