interface Cache<Value> {
  get(document: string): Value | undefined;
  set(document: string, value: Value): void;
}

/** How many documents are kept. */
const size = 1_000;

/**
 * Caches values by the text of their document, for the most recently used documents. A document
 * with inline data is unlikely to be sent again: it is not cached, nor is a card number in it.
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

/** A string, a number with more digits than any `first`, or a comment, which may hold anything. */
const hasData = /["#]|\d{4}/;
