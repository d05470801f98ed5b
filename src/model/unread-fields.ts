/** Paths of unread fields, by message. */
const unread = new WeakMap<object, readonly string[]>();

/** Records a message's unread fields by their JSON paths, such as `details.status`. */
export function noteUnreadFields(message: object, paths: readonly string[]): void {
  unread.set(message, paths);
}

/**
 * JSON paths of a message's unread fields: the payments service sent them, but the codec could not
 * read their values exactly as sent. A value outside the contract must not pass for an absent one.
 * Empty for a message that was not read from JSON, and for a copy.
 */
export function unreadFieldsOf(message: object): readonly string[] {
  return unread.get(message) ?? [];
}
