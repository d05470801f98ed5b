import { randomInt, randomUUID } from "node:crypto";
import { payingWith } from "../ledger/cards.ts";
import type { PayoutRecord } from "../ledger/records.ts";
import { type Scenario, scenarioFor } from "../ledger/scenarios.ts";
import { ApiError } from "./api-error.ts";
import { faultAfterCharge, faultBeforeCharge } from "./faults.ts";
import { readBody, requiredQuery } from "./fields.ts";
import { json, type Route } from "./http.ts";
import type { Parts } from "./parts.ts";
import { type NewPayout, newPayoutBody } from "./payout-request.ts";
import { payoutBody, payoutCallbackBody } from "./payout-view.ts";

/** The two payout endpoints (spec, Payouts). A payout is pending first and ends a little later. */
export function createPayoutRoutes(parts: Parts): Route[] {
  const { ledger, vault, callbacks, schedule, clock, delays, rateLimit } = parts;

  function settle(payout: PayoutRecord): void {
    const { outcome, callbacks: plan } = payout.scenario;
    const { transactionId: subject, externalId, callbackUrl: url } = payout;
    payout.status = outcome === "success" ? "success" : "failure";
    payout.statusCode = outcome === "success" ? "transaction_successful" : outcome;
    ledger.changedPayout(payout);
    callbacks.announce({ subject, externalId, url }, plan, {
      current: () => payoutCallbackBody(payout),
      pending: () => payoutCallbackBody({ ...payout, status: "pending", statusCode: "pending" }),
    });
  }

  function settleLater(payout: PayoutRecord): void {
    const ms = payout.scenario.settles === "later" ? delays.settleMs : delays.payoutMs;
    schedule.after(ms, () => settle(payout));
  }

  function magicOf({ card, originalAmount }: NewPayout): Scenario {
    if (!card) return scenarioFor(originalAmount);
    if ("number" in card) {
      // A payout request has no expiry for the card.
      return scenarioFor(originalAmount, { number: card.number, expiresAt: distantFuture });
    }
    const known = vault.byToken(card.token);
    if (!known) throw new ApiError("invalid_card_token", { param: card.param });
    return scenarioFor(originalAmount, payingWith(known));
  }

  for (const payout of ledger.payouts()) if (payout.status === "pending") settleLater(payout);

  return [
    {
      method: "POST",
      path: "/api/payouts/v1/request-payout",
      handle(request) {
        const input = readBody(newPayoutBody, request.body);
        if (ledger.payout(input.externalId)) {
          throw new ApiError("action_already_done", { param: "order.external_id" });
        }
        const scenario = magicOf(input);
        const fault = faultBeforeCharge(scenario, rateLimit);
        if (fault) return fault;
        const payout = newPayout(input, scenario, new Date(clock.now()));
        ledger.addPayout(payout);
        settleLater(payout);
        return faultAfterCharge(json(payoutBody(payout)), scenario, delays.slowAnswerMs);
      },
    },
    {
      method: "GET",
      path: "/api/payouts/v1/info",
      handle({ query }) {
        const payout = ledger.payout(requiredQuery(query, "external_id"));
        if (!payout) throw new ApiError("transaction_not_found", { param: "external_id" });
        return json(payoutBody(payout));
      },
    },
  ];
}

const distantFuture = new Date(8_640_000_000_000_000);

function newPayout(input: NewPayout, scenario: Scenario, createdAt: Date): PayoutRecord {
  const { card: _, ...kept } = input;
  return {
    ...kept,
    transactionId: randomUUID(),
    fcId: randomInt(1, 2 ** 31),
    createdAt,
    scenario,
    status: "pending",
    statusCode: "pending",
  };
}
