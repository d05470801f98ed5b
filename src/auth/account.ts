import { GatewayError } from "../errors.ts";

/**
 * The merchant account of a call: the one asked for, else `default` or the only one of those that
 * the caller may use. An account that is unknown and one that is not the caller's are refused alike.
 *
 * @param allowed accounts that the caller is limited to; undefined: all
 * @param customer whether the caller is customer-bound. Customers' ids mean somebody in one merchant's
 * platform: one who is not limited to accounts must not pick another merchant to be somebody else.
 * @throws GatewayError PERMISSION_DENIED
 */
export function pickAccount(
  accounts: ReadonlySet<string>,
  allowed: ReadonlySet<string> | undefined,
  asked: string | null | undefined,
  customer: boolean,
): string {
  const mine = allowed ? accounts.intersection(allowed) : accounts;
  const name = asked || usual(mine);
  const open = !customer || allowed !== undefined || name === usual(accounts);
  if (name !== undefined && mine.has(name) && open) return name;
  throw new GatewayError(
    "PERMISSION_DENIED",
    asked
      ? "the merchant account in x-merchant-account is unknown, or not allowed for this caller"
      : "name the merchant account in the header x-merchant-account",
    { reason: "MERCHANT_ACCOUNT_REFUSED" },
  );
}

function usual(accounts: ReadonlySet<string>): string | undefined {
  if (accounts.has("default")) return "default";
  return accounts.size === 1 ? accounts.values().next().value : undefined;
}
