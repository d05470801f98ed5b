interface Cache<Value> {
  get(document: string): Value | undefined;
  set(document: string, value: Value): void;
}

/** How many documents are kept. */
const size = 1_000;

/**
 * Keeps what was made of the newest documents, by their texts. A document that has data in it, and
 * not in its variables, comes once: it is not kept, and neither is a card number within it.
 */
export function createDocumentCache<Value>(): Cache<Value> {
  const kept = new Map<string, Value>();
  return {
    get(document) {
      const value = kept.get(document);
      if (value !== undefined) {
        kept.delete(document);
        kept.set(document, value);
      }
      return value;
    },
    set(document, value) {
      if (hasData.test(document)) return;
      kept.set(document, value);
      if (kept.size <= size) return;
      const [oldest] = kept.keys();
      if (oldest !== undefined) kept.delete(oldest);
    },
  };
}

/** A text, a number longer than any `first`, or a comment, which may say anything. */
const hasData = /["#]|\d{4}/;
