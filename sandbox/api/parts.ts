import type { CardVault } from "../ledger/cards.ts";
import type { Charge, ChargeParts } from "./charge.ts";

/** What the endpoints of one run work on. */
export interface Parts extends ChargeParts {
  readonly vault: CardVault;
  readonly charge: Charge;
}
