/**
 * Exact arithmetic on decimal text (`10.10`) with up to six digits after the point, as in every
 * amount that the sandbox accepts.
 */
export function compare(a: string, b: string): number {
  const difference = parse(a) - parse(b);
  return difference < 0n ? -1 : Number(difference > 0n);
}

export function add(a: string, b: string): string {
  return format(parse(a) + parse(b), Math.max(decimals(a), decimals(b)));
}

/** `b` must not exceed `a`. */
export function subtract(a: string, b: string): string {
  return format(parse(a) - parse(b), Math.max(decimals(a), decimals(b)));
}

/** One percent, rounded half up to two digits after the point: the sandbox's fee. */
export function onePercent(amount: string): string {
  const hundredths = (parse(amount) / 100n + 5_000n) / 10_000n;
  return format(hundredths * 10_000n, 2);
}

const digits = 6;

function parse(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(digits, "0"));
}

function decimals(text: string): number {
  return text.split(".")[1]?.length ?? 0;
}

function format(millionths: bigint, shown: number): string {
  const text = millionths.toString().padStart(digits + 1, "0");
  const fraction = text.slice(-digits).slice(0, shown);
  return text.slice(0, -digits) + (fraction ? `.${fraction}` : "");
}
