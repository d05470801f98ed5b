import { createCharge } from "./api/charge.ts";
import { createConfirmPaymentRoute } from "./api/confirm-payment.ts";
import { createControlRoutes } from "./api/control-routes.ts";
import type { Route } from "./api/http.ts";
import { createNewPaymentRoute } from "./api/new-payment.ts";
import { createOperationRoute } from "./api/operations.ts";
import { createPayoutRoutes } from "./api/payouts.ts";
import { createRecurrentPaymentRoute } from "./api/recurrent-payment.ts";
import { createResendCallbackRoute } from "./api/resend-callback.ts";
import { createSubscriptionRoutes } from "./api/subscriptions.ts";
import { createWalletRoutes } from "./api/wallet-routes.ts";
import { createCallbacks } from "./ledger/callbacks.ts";
import { createCardVault } from "./ledger/cards.ts";
import { seedSubscriptions, seedWallet } from "./ledger/demo-data.ts";
import { createLedger } from "./ledger/ledger.ts";
import { type LedgerView, ledgerView } from "./ledger/ledger-view.ts";
import { createPaymentFlow } from "./ledger/payment-flow.ts";
import { createSchedule, type Schedule } from "./ledger/schedule.ts";
import { createWallets } from "./ledger/wallets.ts";
import { defaultCallbackRetry, defaultDelays, type SandboxOptions } from "./options.ts";
import { createPageRoutes } from "./pages/page-routes.ts";

/** Everything behind the listener: state, what happens by itself, and the routes into both. */
export interface Emulator {
  readonly routes: readonly Route[];
  readonly schedule: Schedule;
  view(): LedgerView;
  close(): Promise<void>;
}

type EmulatorOptions = SandboxOptions & Required<Pick<SandboxOptions, "rateLimit" | "log">>;

const defaultMaxRecords = 10_000;

/** Joins the parts. `baseUrl` is where browsers reach the pages. */
export function createEmulator(options: EmulatorOptions, baseUrl: string): Emulator {
  const { password, log, rateLimit, maxRecords = defaultMaxRecords } = options;
  const delays = { ...defaultDelays, ...options.delays };
  const retry = { ...defaultCallbackRetry, ...options.callbackRetry };
  const schedule = createSchedule((error) => log({ event: "internal_error", error }));
  const callbacks = createCallbacks({ password, retry, schedule, maxWaiting: maxRecords, log });
  const ledger = createLedger(maxRecords);
  const vault = createCardVault(maxRecords);
  const wallets = createWallets(maxRecords);
  seedWallet(wallets, vault);
  const flow = createPaymentFlow({ ledger, wallets, callbacks, schedule, delays, baseUrl });
  const { slowAnswerMs } = delays;
  const charge = createCharge({ flow, rateLimit, slowAnswerMs, baseUrl });

  return {
    schedule,
    view: () => ledgerView(ledger),
    async close() {
      await schedule.close();
      callbacks.close();
    },
    routes: [
      createNewPaymentRoute({ ledger, vault, wallets, charge, baseUrl }),
      createRecurrentPaymentRoute(ledger, charge),
      createConfirmPaymentRoute(ledger, charge),
      createResendCallbackRoute(ledger, flow, callbacks),
      ...createPayoutRoutes({ ledger, vault, callbacks, schedule, delays, rateLimit }),
      ...createWalletRoutes(wallets, ledger),
      ...createSubscriptionRoutes(seedSubscriptions()),
      createOperationRoute(ledger, baseUrl),
      ...createControlRoutes({ ledger, flow, charge, baseUrl }),
      ...createPageRoutes(ledger, vault, flow),
    ],
  };
}
