import { randomBytes } from "node:crypto";
import { passesLuhn } from "../../src/secrets/mask-card-numbers.ts";
import { Secret } from "../../src/secrets/secret.ts";
import type { SavedState } from "./saved-state.ts";
import { listedCards, type PayingCard } from "./scenarios.ts";

/** A card as the sandbox stores it, without its security code. */
export interface Card {
  /** Unknown for a card that was saved, unless it is a listed one. */
  readonly number?: Secret;
  /** Its number has a magic value: anybody may know it. */
  readonly isListed: boolean;
  readonly token: string;
  /** First six and last four digits. */
  readonly mask: string;
  readonly paymentSystem: string;
  /** The last second of its last month. */
  readonly expiresAt: Date;
}

export type CardVault = ReturnType<typeof createCardVault>;

/** The cards that the sandbox has seen, by their tokens: at most `maxCards`, then the newest. */
export function createCardVault(maxCards: number, saved: SavedState) {
  const byToken = new Map(
    saved.all<Card>("card").map((card) => [card.token, withListedNumber(card)]),
  );

  return {
    /** Stores and returns a card; the same number and expiry have the same token. */
    keep(number: string, month: number, year: number): Card {
      const expiresAt = new Date(Date.UTC(fullYear(year), month, 1) - 1_000);
      for (const known of byToken.values()) {
        const isIt = known.number?.reveal() === number;
        if (isIt && known.expiresAt.getTime() === expiresAt.getTime()) return known;
      }
      const card: Card = {
        number: new Secret(number),
        isListed: listedCards.has(number),
        token: `tok_${randomBytes(18).toString("hex")}`,
        mask: maskOf(number),
        paymentSystem: paymentSystemOf(number),
        expiresAt,
      };
      byToken.set(card.token, card);
      saved.put("card", card.token, card);
      for (const [token] of forgetOldest(byToken, maxCards)) saved.remove("card", token);
      return card;
    },
    byToken: (token: string) => byToken.get(token),
    /** The vault's own card for one that was saved with something else. */
    restored: (card: Card) => byToken.get(card.token) ?? withListedNumber(card),
  };
}

/** What of a card decides the outcome. A card of unknown number is not a listed one. */
export function payingWith({ number, expiresAt }: Card): PayingCard {
  return { number: number?.reveal() ?? "", expiresAt };
}

function withListedNumber(card: Card): Card {
  const number = card.isListed && [...listedCards].find((listed) => maskOf(listed) === card.mask);
  return number ? { ...card, number: new Secret(number) } : card;
}

function maskOf(number: string): string {
  return `${number.slice(0, 6)}${"*".repeat(number.length - 10)}${number.slice(-4)}`;
}

/** Removes the oldest entries of a map that exceeds `max` and returns them. */
export function forgetOldest<Key, Value>(map: Map<Key, Value>, max: number): [Key, Value][] {
  const forgotten: [Key, Value][] = [];
  for (const entry of map) {
    if (map.size <= max) break;
    map.delete(entry[0]);
    forgotten.push(entry);
  }
  return forgotten;
}

export function isCardNumber(text: string): boolean {
  return /^\d{12,19}$/.test(text) && passesLuhn(text);
}

export const cvv = /^\d{3,4}$/;

function paymentSystemOf(number: string): string {
  const prefix = Number(number.slice(0, 4));
  if (number.startsWith("4")) return "visa";
  if ((prefix >= 5100 && prefix <= 5599) || (prefix >= 2221 && prefix <= 2720)) return "mastercard";
  return "other";
}

function fullYear(year: number): number {
  return year < 100 ? 2000 + year : year;
}
