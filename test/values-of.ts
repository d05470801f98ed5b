/** What each item of a list has under this name. */
export function valuesOf<Item, Name extends keyof Item>(
  items: readonly Item[] | undefined,
  name: Name,
): Item[Name][] | undefined {
  return items?.map((item) => item[name]);
}
