/**
 * The order in a page's address. Each try to pay it is a payment with an external id of its own, so
 * that the page of an earlier try shows no other payment than its own.
 */
export function orderIn(address) {
  const { searchParams } = new URL(address);
  const order = searchParams.get("order") ?? `demo-${crypto.randomUUID().slice(0, 8)}`;
  const attempt = Math.max(1, Number.parseInt(searchParams.get("try") ?? "1", 10) || 1);
  const externalId = attempt === 1 ? order : `${order}-${attempt}`;
  return { order, attempt, externalId };
}

/** The address of one of the shop's pages for a try to pay an order. */
export function pageOf(path, { order, attempt }) {
  const url = new URL(path, location.href);
  url.searchParams.set("order", order);
  if (attempt > 1) url.searchParams.set("try", attempt);
  return url.href;
}
