/** Who asks the admin listener, and what they may see there. */
export interface Operator {
  /** Fit for logs. */
  readonly name: string;
  /** Merchant accounts that the operator may see, at least one. */
  readonly accounts: readonly string[];
}

/** A refusal with its HTTP status; its message is for the operator. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  readonly reason: string | undefined;

  constructor(status: number, message: string, reason?: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/**
 * The account that is asked about; without a name the only one. One that is unknown and one that is
 * not the operator's are refused alike.
 * @throws Refused
 */
export function accountOf({ accounts }: Operator, asked: string | null): string {
  const [only, ...others] = accounts;
  if (asked === null && only !== undefined && others.length === 0) return only;
  if (asked === null) throw new Refused(400, "say which account: ?account=");
  if (accounts.includes(asked)) return asked;
  throw new Refused(403, "the account is unknown or not yours", "MERCHANT_ACCOUNT_REFUSED");
}
