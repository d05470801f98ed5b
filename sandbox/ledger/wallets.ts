import { randomUUID } from "node:crypto";
import { type Card, type CardVault, forgetOldest } from "./cards.ts";
import type { SavedState } from "./saved-state.ts";

/** A card in a customer's wallet. */
export interface WalletEntry {
  readonly optionId: string;
  readonly card: Card;
  readonly name?: string;
  readonly isDefault: boolean;
  readonly isConfirmed: boolean;
}

/** A customer's wallet as it is saved. */
export interface SavedWallet {
  readonly customerId: string;
  readonly entries: readonly WalletEntry[];
}

export type Wallets = ReturnType<typeof createWallets>;

/**
 * The customers' wallets, by the merchant's ids of the customers. Keeps at most `maxWallets`; the
 * oldest are removed.
 */
export function createWallets(maxWallets: number, vault: CardVault, saved: SavedState) {
  const wallets = new Map<string, readonly WalletEntry[]>();
  for (const { customerId, entries } of saved.all<SavedWallet>("wallet")) {
    const restored = entries.map((entry) => ({ ...entry, card: vault.restored(entry.card) }));
    wallets.set(customerId, restored);
  }

  function change(customerId: string, entries: readonly WalletEntry[]): void {
    wallets.set(customerId, entries);
    saved.put("wallet", customerId, { customerId, entries });
    for (const [old] of forgetOldest(wallets, maxWallets)) saved.remove("wallet", old);
  }

  /** In the order of insertion; undefined for a customer without a wallet. */
  const items = (customerId: string) => wallets.get(customerId);

  function add(customerId: string, entry: WalletEntry): void {
    change(customerId, [...(items(customerId) ?? []), entry]);
  }

  return {
    add,
    items,
    item: (customerId: string, optionId: string) =>
      items(customerId)?.find((entry) => entry.optionId === optionId.toLowerCase()),
    /** Adds the card of a payment, unless the wallet already has it. */
    keep(customerId: string, card: Card): void {
      const kept = items(customerId) ?? [];
      if (kept.some((entry) => entry.card === card)) return;
      const isDefault = kept.length === 0;
      add(customerId, { optionId: randomUUID(), card, isDefault, isConfirmed: true });
    },
    remove(customerId: string, { optionId }: WalletEntry): void {
      const kept = items(customerId) ?? [];
      change(
        customerId,
        kept.filter((entry) => entry.optionId !== optionId),
      );
    },
  };
}
