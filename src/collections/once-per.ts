/** Makes something of each key once, and keeps it for as long as the key is in use. */
export function oncePer<Key extends object, Made extends object>(
  make: (key: Key) => Made,
): (key: Key) => Made {
  const all = new WeakMap<Key, Made>();
  return (key) => {
    let made = all.get(key);
    if (made === undefined) {
      made = make(key);
      all.set(key, made);
    }
    return made;
  };
}
