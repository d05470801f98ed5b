import type { SubscriptionRecord } from "../api/subscriptions.ts";
import type { CardVault } from "./cards.ts";
import type { Wallets } from "./wallets.ts";

/** The customer that exists from the start. */
export const demoCustomer = {
  externalId: "demo-customer",
  rid: "0b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f60",
} as const;

/** The demo customer's cards: a confirmed Visa and a Mastercard that is not confirmed. */
export const demoOptions = {
  confirmed: "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01",
  unconfirmed: "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a02",
} as const;

export const demoSubscriptions = {
  active: "c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f01",
  /** Its auto_renew is locked against changes. */
  locked: "c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f02",
  inactive: "c2a8e6f4-3b1d-4f7a-9c05-8e7d6b5a4f03",
} as const;

export function seedWallet(wallets: Wallets, vault: CardVault): void {
  wallets.add(demoCustomer.externalId, {
    optionId: demoOptions.confirmed,
    card: vault.keep("4111111111111111", 12, 2035),
    name: "Everyday card",
    isDefault: true,
    isConfirmed: true,
  });
  wallets.add(demoCustomer.externalId, {
    optionId: demoOptions.unconfirmed,
    card: vault.keep("5555555555554444", 6, 2034),
    isDefault: false,
    isConfirmed: false,
  });
}

export function seedSubscriptions(): SubscriptionRecord[] {
  const owner = { customerExternalId: demoCustomer.externalId, customerRid: demoCustomer.rid };
  const { active, locked, inactive } = demoSubscriptions;
  return [
    { ...owner, id: active, autoRenew: true, active: true, locked: false },
    { ...owner, id: locked, autoRenew: true, active: true, locked: true },
    { ...owner, id: inactive, autoRenew: false, active: false, locked: false },
  ];
}
