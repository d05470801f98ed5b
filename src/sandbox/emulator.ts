import { createCallbacks } from "./callbacks.ts";
import { createCardVault } from "./cards.ts";
import { createCharge } from "./charge.ts";
import { createConfirmPaymentRoute } from "./confirm-payment.ts";
import { createControlRoutes } from "./control-routes.ts";
import { seedSubscriptions, seedWallet } from "./demo-data.ts";
import type { Route } from "./http.ts";
import { createLedger } from "./ledger.ts";
import { type LedgerView, ledgerView } from "./ledger-view.ts";
import { createNewPaymentRoute } from "./new-payment.ts";
import { createOperationRoute } from "./operations.ts";
import { defaultCallbackRetry, defaultDelays, type SandboxOptions } from "./options.ts";
import { createPageRoutes } from "./page-routes.ts";
import { createPaymentFlow } from "./payment-flow.ts";
import { createPayoutRoutes } from "./payouts.ts";
import { createRecurrentPaymentRoute } from "./recurrent-payment.ts";
import { createResendCallbackRoute } from "./resend-callback.ts";
import { createSchedule, type Schedule } from "./schedule.ts";
import { createSubscriptionRoutes } from "./subscriptions.ts";
import { createWalletRoutes } from "./wallet-routes.ts";
import { createWallets } from "./wallets.ts";

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
      createResendCallbackRoute(ledger, flow),
      ...createPayoutRoutes({ ledger, vault, callbacks, schedule, delays, rateLimit }),
      ...createWalletRoutes(wallets, ledger),
      ...createSubscriptionRoutes(seedSubscriptions()),
      createOperationRoute(ledger, baseUrl),
      ...createControlRoutes({ ledger, flow, charge, baseUrl }),
      ...createPageRoutes(ledger, vault, flow),
    ],
  };
}
