/** A surrogate, half of a character beyond U+FFFF: texts with one are left to protovalidate. */
export const surrogate = /[\ud800-\udfff]/;

/**
 * Translates an RE2 pattern into a JavaScript one that matches the same texts, if these contain no
 * surrogates.
 * @throws Error for a pattern that may mean something else in JavaScript
 */
export function exactRegex(pattern: string): RegExp {
  const anyCase = pattern.startsWith("^(?i)");
  const plain = anyCase ? `^${pattern.slice("^(?i)".length)}` : pattern;
  if (!plainPattern.test(plain)) throw new Error(`not compiled: ${pattern}`);
  return new RegExp(plain, anyCase ? "i" : "");
}

/**
 * The patterns that are translated: letters, digits and some marks, classes of them, groups,
 * alternatives, repetitions and escaped marks.
 */
const plainPattern =
  /^\^?(?:[\w:/@,=!~%&;#"' -]|\\[.\\/*+?()[\]{}|^$-]|\[\^?[\w:/@,=!~%&;#"' ?.-]+\]|\(\?:|\((?!\?)|\)|\||[*+?]|\{\d+(?:,\d*)?\})*\$?$/;

/** Protovalidate accepts every text of these forms, and some less usual texts too. */
export const plainUri =
  /^https?:\/\/[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w.~-]*)*(?:\?[\w.~=&-]*)?(?:#[\w.~-]*)?$/i;
export const plainEmail =
  /^[\w.+-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;
export const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
export const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
