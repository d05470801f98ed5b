import { useEffect, useState } from "preact/hooks";

/** An observable value that components watch. */
export class Store<Value> {
  #value: Value;
  readonly #watchers = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get value(): Value {
    return this.#value;
  }

  set(value: Value): void {
    if (value === this.#value) return;
    this.#value = value;
    for (const watcher of this.#watchers) watcher();
  }

  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}

/** The store's value; the component renders again when it changes. */
export function useStore<Value>(store: Store<Value>): Value {
  const [, render] = useState({});
  useEffect(() => {
    const rendered = store.value;
    const stop = store.watch(() => render({}));
    // The value may have changed between rendering and watching.
    if (store.value !== rendered) render({});
    return stop;
  }, [store]);
  return store.value;
}
