import { createCharge } from "./api/charge.ts";
import { createConfirmPaymentRoute } from "./api/confirm-payment.ts";
import { createControlRoutes } from "./api/control-routes.ts";
import { createNewPaymentRoute } from "./api/new-payment.ts";
import { createOperationRoute } from "./api/operations.ts";
import type { Parts } from "./api/parts.ts";
import { createPayoutRoutes } from "./api/payouts.ts";
import { createRateLimit } from "./api/rate-limit.ts";
import { createRecurrentPaymentRoute } from "./api/recurrent-payment.ts";
import { createResendCallbackRoute } from "./api/resend-callback.ts";
import { createRouter } from "./api/router.ts";
import { createSubscriptionRoutes } from "./api/subscriptions.ts";
import { createTestRoutes } from "./api/test-routes.ts";
import { createWalletRoutes } from "./api/wallet-routes.ts";
import { createClock } from "./clock.ts";
import { createCallbacks } from "./ledger/callbacks.ts";
import { createCardVault } from "./ledger/cards.ts";
import { seedSubscriptions, seedWallet } from "./ledger/demo-data.ts";
import { createJournal } from "./ledger/journal.ts";
import { createLedger } from "./ledger/ledger.ts";
import { ledgerView } from "./ledger/ledger-view.ts";
import { createPaymentFlow } from "./ledger/payment-flow.ts";
import { nothingSaved } from "./ledger/saved-state.ts";
import { createSchedule } from "./ledger/schedule.ts";
import { createWallets } from "./ledger/wallets.ts";
import type { Settings } from "./options.ts";
import { createPageRoutes } from "./pages/page-routes.ts";

export type Emulator = ReturnType<typeof createEmulator>;

/**
 * Everything behind the listener and one login: state, background work (`schedule`), rate limit and
 * routes. `baseUrl` is where browsers reach the emulator's pages. It closes `saved`.
 */
export function createEmulator(settings: Settings, baseUrl: string, saved = nothingSaved) {
  const { password, log, rateLimit, maxRecords, delays, callbackRetry } = settings;
  const clock = createClock(saved.all<{ movedMs: number }>("clock")[0]?.movedMs ?? 0, (movedMs) =>
    saved.put("clock", "moved", { movedMs }),
  );
  const journal = createJournal(clock);
  const schedule = createSchedule(clock, (error) => log({ event: "internal_error", error }));
  const callbacks = createCallbacks({
    ...{ password, retry: callbackRetry, schedule, clock, journal, saved, log },
    delayMs: delays.callbackMs,
    maxWaiting: maxRecords,
  });
  const vault = createCardVault(maxRecords, saved);
  const ledger = createLedger(maxRecords, vault, saved);
  const wallets = createWallets(maxRecords, vault, saved);
  if (saved.isNew) seedWallet(wallets, vault);
  const flowParts = { ledger, wallets, callbacks, schedule, clock, delays, baseUrl };
  const flow = createPaymentFlow(flowParts);
  for (const payment of ledger.payments()) flow.resume(payment);
  const chargeParts = { ...flowParts, flow, rateLimit };
  const parts: Parts = { ...chargeParts, charge: createCharge(chargeParts), vault };

  return {
    schedule,
    clock,
    journal,
    /** Whether the URL of a payment's page contains this token. */
    hasPage: (pageToken: string) => ledger.paymentByPage(pageToken) !== undefined,
    view: () => ledgerView(ledger),
    async close() {
      await schedule.close();
      saved.close();
    },
    rateLimit: createRateLimit(rateLimit, () => performance.now()),
    findRoute: createRouter([
      createNewPaymentRoute(parts),
      createRecurrentPaymentRoute(parts),
      createConfirmPaymentRoute(parts),
      createResendCallbackRoute(parts),
      ...createPayoutRoutes(parts),
      ...createWalletRoutes(parts),
      ...createSubscriptionRoutes(seedSubscriptions(), saved),
      createOperationRoute(parts),
      ...createControlRoutes(parts),
      ...createTestRoutes(clock, journal),
      ...createPageRoutes(parts),
    ]),
  };
}
