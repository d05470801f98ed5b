/** By message: what the payments service's JSON said that was not read as it stood. */
const unread = new WeakMap<object, readonly string[]>();

/** Notes the paths of a message's fields that were not read as they stood, such as `details.status`. */
export function noteUnreadFields(message: object, paths: readonly string[]): void {
  unread.set(message, paths);
}

/**
 * Paths of fields that the JSON of a message has and that were not read as they stood: a value that
 * the contract does not know must not pass for an absent one. None of a message that was not read
 * from JSON, or is a copy.
 */
export function unreadFieldsOf(message: object): readonly string[] {
  return unread.get(message) ?? [];
}
