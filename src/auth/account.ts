import { GatewayError } from "../errors.ts";

/**
 * The merchant account of a call: the requested one, else `default` or the only one of those that
 * the caller may use. An unknown account and one that the caller may not use are refused with the
 * same error.
 *
 * @param allowed accounts that the caller is limited to; undefined: all
 * @param customer whether the caller is customer-bound. The same customer id may be another person
 * at another merchant, so a customer without `allowed` may use no account but the default one.
 * @throws GatewayError PERMISSION_DENIED
 */
export function pickAccount(
  accounts: ReadonlySet<string>,
  allowed: ReadonlySet<string> | undefined,
  asked: string | null | undefined,
  customer: boolean,
): string {
  const mine = allowed ? accounts.intersection(allowed) : accounts;
  const name = asked || usualAccount(mine);
  const open = !customer || allowed !== undefined || name === usualAccount(accounts);
  if (name !== undefined && mine.has(name) && open) return name;
  throw new GatewayError(
    "PERMISSION_DENIED",
    asked
      ? "the merchant account that was asked for is unknown, or not allowed for this caller"
      : "name the merchant account in the header x-merchant-account",
    { reason: "MERCHANT_ACCOUNT_REFUSED" },
  );
}

/** The account of a request that names none: `default`, or the only one. */
export function usualAccount(accounts: ReadonlySet<string>): string | undefined {
  if (accounts.has("default")) return "default";
  return accounts.size === 1 ? accounts.values().next().value : undefined;
}
