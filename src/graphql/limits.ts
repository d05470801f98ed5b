import { intakeLimits } from "../net/intake-limits.ts";

/** Limits of one operation. One that exceeds them is rejected before any upstream call. */
export const limits = {
  /** Longest request body and WebSocket message, in bytes. */
  messageBytes: intakeLimits.messageBytes,
  /** Operations in progress on one WebSocket. A page needs one for each list or detail. */
  operationsPerSocket: 100,
  /**
   * Longest document, in UTF-16 code units. Data belongs in variables; a document with our largest
   * mutation and every field of a payment has some 8,000. Parsed documents are cached, so this
   * limits memory as well.
   */
  documentLength: 64 * 1024,
  /** Tokens of a document: the parser stops there. All fields of a payment take some 150. */
  tokens: 2_000,
  /** Aliases in a whole document. A page that shows a list of payments needs one for each. */
  aliases: 50,
  /** Times that one selection may name the same field: each is compared with each. */
  repeats: 10,
  /** Aliases within introspection, where each may repeat the whole schema. */
  introspectionAliases: 5,
  /** Validation errors that are reported for one request, at most. */
  faults: 10,
  /** See `costOf`. About a hundred upstream calls, at the default of 10 a second. */
  cost: 1_000,
} as const;
