/** The directory cannot be used as a store; the message says why, and what to do. */
export class StoreRefused extends Error {
  override readonly name = "StoreRefused";
}
