/** Values that must not appear in any output, by name. */
export type Canaries = Readonly<Record<string, string>>;

export interface Place {
  /** Where the text was found: `log`, `metrics`, `error of …`. */
  readonly where: string;
  readonly text: string;
}

/**
 * Finds canaries in any form: plain, in capitals or not, with separators between the digits,
 * URL-encoded, in hex, and within base64 at any of its three alignments.
 */
export function findCanaries(canaries: Canaries, places: readonly Place[]): string[] {
  const searched = Object.entries(canaries).map(([name, value]) => ({
    name,
    forms: formsOf(value),
    digits: /^\d+$/.test(value) ? new RegExp(`(?<![\\w.-])${value}(?![\\w-])`) : undefined,
  }));
  const found = new Set<string>();
  for (const { where, text } of places) {
    const lower = text.toLowerCase();
    // Without backslashes, nested JSON matches however often it was escaped.
    const unescaped = lower.replaceAll("\\", "");
    const joined = text.replace(/(?<=\d)(?: |\u00a0|[-._+]|%20|\\u00a0){1,2}(?=\d)/gi, "");
    for (const { name, forms, digits } of searched) {
      const hit = digits
        ? digits.test(text) || (forms.long && digits.test(joined))
        : unescaped.includes(forms.plain);
      if (hit) found.add(`${name}: plain, ${where}`);
      if (forms.encoded.some((form) => text.includes(form)))
        found.add(`${name}: encoded, ${where}`);
      if (forms.lower.some((form) => lower.includes(form))) found.add(`${name}: encoded, ${where}`);
    }
  }
  return [...found];
}

function formsOf(value: string) {
  // Encoded forms of a value as short as four digits would match by chance.
  const long = value.length >= 8;
  const bytes = Buffer.from(value);
  const base64 = [0, 1, 2].map((offset) => middleOfBase64(bytes, offset));
  const encoded = long
    ? [...base64, ...base64.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))]
    : [];
  const url = encodeURIComponent(value).toLowerCase();
  return {
    long,
    plain: value.toLowerCase().replaceAll("\\", ""),
    encoded,
    lower: long ? [url, bytes.toString("hex")] : [],
  };
}

/** The characters of a base64 text that depend on the value alone, not on the bytes around it. */
function middleOfBase64(bytes: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor(((offset + bytes.length) * 8) / 6);
  return text.slice(first, last);
}
