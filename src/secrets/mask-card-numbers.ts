/**
 * Masks card numbers in a text: each run of 12 to 19 digits that passes the Luhn check keeps only
 * its first six and last four digits. The digits may be grouped (`4111 1111 1111 1111`) by up to
 * two spaces of any kind, dashes, dots, slashes, underscores or the plus signs of a form. A longer
 * run without groups is masked in the same way, without the check.
 * @param minDigits of the shortest number that is masked, 12 to 19
 */
export function maskCardNumbers(text: string, minDigits = shortest): string {
  return text.replace(digitRun, (run: string) => maskRun(run, minDigits));
}

/** An external_id in the form that logs may hold: a caller, or the service, may send anything as one. */
export function loggedId(externalId: string): string {
  // Masked before it is cut: what is left of a cut card number would not look like one.
  const masked = maskCardNumbers(externalId.slice(0, 2 * maxLogged), loggedDigits);
  return masked.slice(0, maxLogged);
}

const maxLogged = 128;
/** Order numbers made of a time in milliseconds have 13 digits, most cards 16. */
const loggedDigits = 15;

const digitRun =
  /\d(?:[ \t./_+\u00ad\u00a0\u00b7\u2000-\u200d\u202f\u205f\u2060\u3000\u2010-\u2015\u2212\ufeff-]{0,2}\d){11,}/g;
const maxDigits = 19;
const shortest = 12;
const maxRunChars = 1_000;

/** A run may hold more digits than a card number (`4111 1111 1111 1111 12`): checks its groups. */
function maskRun(run: string, minDigits: number): string {
  // No card number stands among so many digits: none of them is worth a search.
  if (run.length > maxRunChars) return "*".repeat(run.length);
  /** Groups of digits, and between two of them what separates them. */
  const parts = run.split(/(\D+)/);
  for (let first = 0; first < parts.length; first += 2) {
    const number = parts.slice(first, endOfCardNumber(parts, first, minDigits));
    if (number.length > 0) parts.splice(first, number.length, maskDigits(number.join("")));
  }
  return parts.join("");
}

/** Behind the longest card number that begins with the group `first`; `first` if none does. */
function endOfCardNumber(parts: readonly string[], first: number, minDigits: number): number {
  let digits = "";
  let end = first;
  for (let at = first; at < parts.length; at += 2) {
    digits += parts[at];
    if (digits.length > maxDigits) return at === first ? first + 1 : end;
    if (digits.length >= minDigits && passesLuhn(digits)) end = at + 1;
  }
  return end;
}

function maskDigits(text: string): string {
  const count = text.replace(/\D/g, "").length;
  let seen = 0;
  return text.replace(/\d/g, (digit) => {
    seen++;
    return seen <= 6 || seen > count - 4 ? digit : "*";
  });
}

/** Whether the last of some digits is right for those before it (ISO/IEC 7812-1, annex B). */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    const weighted = i % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}
