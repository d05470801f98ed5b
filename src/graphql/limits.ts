/** What one operation may be. More is refused before anything is asked of the upstream. */
export const limits = {
  /** Longest body of a request and longest WebSocket message, in bytes: as for callbacks and RPC. */
  messageBytes: 1024 * 1024,
  /** Operations that one WebSocket may have under way. A page takes one for each list or detail. */
  operationsPerSocket: 100,
  /**
   * Longest document, in UTF-16 code units. Data goes into variables; of our largest mutation and
   * every field of a payment a document has some 8,000. Parsed documents are kept, so that this
   * bounds memory as well.
   */
  documentLength: 64 * 1024,
  /** Words and signs of a document: it is read no further. All fields of a payment are some 150. */
  tokens: 2_000,
  /**
   * Fields within fields. The longest way that tells something new is
   * events, payment, events, payment, operationInfo and a field: 6. Introspection is not counted.
   */
  depth: 10,
  /** Renamed fields of a whole document. A page that shows a list of payments takes one for each. */
  aliases: 50,
  /** Renamed fields within introspection, where each may multiply the whole schema. */
  introspectionAliases: 5,
  /** Values in the variables of one operation, at all depths. The largest payment has some 200. */
  values: 10_000,
  /** How many faults of a request are reported. */
  faults: 10,
  /** See `operation-cost.ts`: about a hundred calls of the upstream, at its default of 10 a second. */
  cost: 1_000,
} as const;
