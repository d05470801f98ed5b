import type { IncomingMessage } from "node:http";
import type { Credential, Scope } from "../auth/caller.ts";
import { type Credentials, createIdentify, type Identify, type Verify } from "../auth/identify.ts";
import { GatewayError } from "../errors.ts";
import type { Operator } from "./operator.ts";

/** Scopes of the console's GraphQL: it moves no money and reads no wallet, whoever uses it. */
const readScopes: ReadonlySet<Scope> = new Set<Scope>([
  "events:read",
  "payments:read",
  "payouts:read",
  "operations:read",
]);

/** Operators are callers with the scope `admin`; with AUTH_MODE=none every caller is one. */
export function createOperatorIdentity(verify: Verify, accounts: ReadonlySet<string>) {
  async function verifyAdmin(credentials: Credentials): Promise<Credential> {
    const credential = await verify(credentials);
    if (credential.scopes.has("admin")) return credential;
    throw new GatewayError("PERMISSION_DENIED", "needs the scope admin", {
      reason: "SCOPE_MISSING",
    });
  }

  const identifyAdmin = createIdentify(verifyAdmin, accounts);
  /** For GraphQL: an operator as a caller who may only read. */
  const identify: Identify = async ({ header }, account) => {
    const { customerToken: _, ...caller } = await identifyAdmin({ header }, account);
    return { ...caller, scopes: readScopes };
  };
  return {
    identify,
    /** @throws GatewayError UNAUTHENTICATED, PERMISSION_DENIED without `admin` or an account */
    async operatorOf({ headers }: IncomingMessage): Promise<Operator> {
      const header = (name: string) => headers[name]?.toString();
      const { name, merchants = accounts } = await verifyAdmin({ header });
      const mine = accounts.intersection(merchants);
      if (mine.size > 0) return { name, accounts: [...mine] };
      throw new GatewayError("PERMISSION_DENIED", "none of your merchant accounts is configured", {
        reason: "MERCHANT_ACCOUNT_REFUSED",
      });
    },
  };
}
