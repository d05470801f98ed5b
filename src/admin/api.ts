import * as z from "zod";
import { type Kind, kindNames, kindOfResource, kinds } from "../model/kinds.ts";
import type { PaymentAction } from "./console-api.ts";
import type { ConsoleData } from "./create-console.ts";
import type { AdminRequest } from "./dead-letter-routes.ts";
import { accountOf, type Operator, Refused, read } from "./operator.ts";
import type { SandboxActions } from "./sandbox-actions.ts";

/** The JSON at `/api/...`; undefined for what does not exist. @throws Refused */
export async function answerApi(
  data: ConsoleData,
  operator: Operator,
  request: AdminRequest,
): Promise<unknown> {
  const { method, path, query } = request;
  const [, , resource = "", ...rest] = path.split("/");
  if (resource === "sandbox")
    return answerSandboxAction(data.sandboxActions, operator, request, rest);
  const isAction = resource === "look-up" || resource === "resend-callback";
  if (isAction && method === "POST" && rest.length === 0) {
    const asked: PaymentAction = read(paymentAction, await request.body());
    const action = { ...asked, account: accountOf(operator, asked.account) };
    return resource === "look-up"
      ? data.lookUp(operator, action)
      : data.resendCallback(operator, action);
  }
  if (method !== "GET") throw new Refused(405, "method not allowed");
  if (resource === "session" && rest.length === 0) return data.session(operator);

  if (resource === "dead-letters" && rest.length === 2) {
    const [account = "", id = ""] = rest.map(decodeURIComponent);
    return data.deadLetter(accountOf(operator, account), id);
  }
  if (rest.length > 0) return undefined;
  const account = () => accountOf(operator, query.get("account"));
  switch (resource) {
    case "status":
      return data.status(account());
    case "start":
      return data.start(account());
    case "calls":
      return data.calls(account());
    case "dead-letters":
      return data.deadLetters(account(), query.get("cursor") ?? undefined);
    case "payments":
    case "payouts": {
      const asked = listQuery.safeParse(Object.fromEntries(query));
      if (!asked.success) throw new Refused(400, "give account, state, search and after as texts");
      const kind = kinds[kindOfResource(resource) as Kind].name;
      return data.list({ ...asked.data, account: account(), kind });
    }
    case "history": {
      const asked = historyQuery.safeParse(Object.fromEntries(query));
      if (!asked.success) throw new Refused(400, "give kind (payment or payout) and external_id");
      return data.history(account(), asked.data.kind, asked.data.external_id);
    }
    default:
      return undefined;
  }
}

const listQuery = z.object({
  state: z.string().max(50).optional(),
  search: z.string().max(1_000).optional(),
  after: z.string().max(1_000).optional(),
});

const historyQuery = z.object({
  kind: z.enum(kindNames),
  external_id: z.string().min(1).max(1_000),
});

async function answerSandboxAction(
  sandboxActions: SandboxActions | undefined,
  operator: Operator,
  { method, body }: AdminRequest,
  [what, ...rest]: readonly string[],
): Promise<unknown> {
  if (!sandboxActions || rest.length > 0) return undefined;
  accountOf(operator, sandboxActions.account);
  if (what === undefined && method === "GET") return sandboxActions.scenarios;
  if (method !== "POST") throw new Refused(405, "method not allowed");
  switch (what) {
    case "payments":
      return sandboxActions.pay(read(order, await body()));
    case "payouts":
      return sandboxActions.payOut(read(order, await body()));
    case "callbacks":
      return sandboxActions.callback(read(sandboxCallback, await body()));
    default:
      return undefined;
  }
}

const paymentAction = z.strictObject({
  account: z.string(),
  kind: z.enum(kindNames),
  externalId: z.string().min(1).max(1_000),
});

const text = z.string().min(1).max(255);
const order = z.strictObject({
  scenario: text,
  amount: text,
  currency: text,
  externalId: text,
  by: z.enum(["card", "amount"]),
});
const sandboxCallback = z.strictObject({ kind: z.enum(["not_understood", "forged"]) });
