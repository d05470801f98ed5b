import { randomUUID } from "node:crypto";
import { type Card, forgetOldest } from "./cards.ts";

/** A card in a customer's wallet. */
export interface WalletEntry {
  readonly optionId: string;
  readonly card: Card;
  readonly name?: string;
  readonly isDefault: boolean;
  readonly isConfirmed: boolean;
}

/** The customers' wallets, by the merchant's ids of the customers. */
export interface Wallets {
  /** In the order of insertion; undefined for a customer without a wallet. */
  items(customerId: string): readonly WalletEntry[] | undefined;
  item(customerId: string, optionId: string): WalletEntry | undefined;
  add(customerId: string, entry: WalletEntry): void;
  /** Adds the card of a payment, unless the wallet already has it. */
  keep(customerId: string, card: Card): void;
  remove(customerId: string, optionId: string): WalletEntry | undefined;
}

/** Keeps at most `maxWallets` wallets; the oldest are removed. */
export function createWallets(maxWallets: number): Wallets {
  const wallets = new Map<string, Map<string, WalletEntry>>();

  function add(customerId: string, entry: WalletEntry): void {
    const wallet = wallets.get(customerId) ?? new Map<string, WalletEntry>();
    wallet.set(entry.optionId, entry);
    wallets.set(customerId, wallet);
    forgetOldest(wallets, maxWallets);
  }

  function items(customerId: string): readonly WalletEntry[] | undefined {
    const wallet = wallets.get(customerId);
    return wallet && [...wallet.values()];
  }

  function item(customerId: string, optionId: string): WalletEntry | undefined {
    return wallets.get(customerId)?.get(optionId.toLowerCase());
  }

  return {
    add,
    items,
    item,
    keep(customerId, card) {
      const kept = items(customerId) ?? [];
      if (kept.some((entry) => entry.card === card)) return;
      const isDefault = kept.length === 0;
      add(customerId, { optionId: randomUUID(), card, isDefault, isConfirmed: true });
    },
    remove(customerId, optionId) {
      const entry = item(customerId, optionId);
      if (entry) wallets.get(customerId)?.delete(entry.optionId);
      return entry;
    },
  };
}
