/** Half a character, of which the rules of texts are not asked here. */
export const surrogate = /[\ud800-\udfff]/;

/**
 * A regular expression of RE2 as one of JavaScript's that says the same of texts without surrogates.
 * @throws Error for what may mean something else there
 */
export function exactRegex(pattern: string): RegExp {
  const anyCase = pattern.startsWith("^(?i)");
  const plain = anyCase ? `^${pattern.slice("^(?i)".length)}` : pattern;
  if (!plainPattern.test(plain)) throw new Error(`not compiled: ${pattern}`);
  return new RegExp(plain, anyCase ? "i" : "");
}

/** Letters, digits, classes of them, groups, alternatives, bounds and escaped marks. */
const plainPattern =
  /^\^?(?:[\w:/@,=!~%&;#"' -]|\\[.\\/*+?()[\]{}|^$-]|\[\^?[\w:/@,=!~%&;#"' ?.-]+\]|\((?:\?:)?|\)|\||[*+?]|\{\d+(?:,\d*)?\})*\$?$/;

/** Texts of these forms are what protovalidate says, and so are some that are odder. */
export const plainUri =
  /^https?:\/\/[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w.~-]*)*(?:\?[\w.~=&-]*)?(?:#[\w.~-]*)?$/i;
export const plainEmail =
  /^[\w.+-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;
export const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
export const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
