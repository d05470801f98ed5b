import { useEffect, useState } from "preact/hooks";
import type { KindName } from "../src/model/kinds.ts";
import { kindNames, kindTexts } from "./kinds.ts";

/** What the page shows: the fragment of its address, so that each view has a URL of its own. */
export type Route = { readonly account?: string | undefined } & View;

export type View =
  | { readonly page: "watch" }
  | { readonly page: "try" }
  | {
      readonly page: "list";
      readonly kind: KindName;
      readonly state: string;
      readonly search: string;
    }
  | ({ readonly page: "subject" } & Subject);

/** A payment or payout. */
export interface Subject {
  readonly kind: KindName;
  readonly externalId: string;
}

/** `#/shop/payments/order-1` is the page of a payment, `#/shop/payments?state=failed` a list. */
export function routeOf(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const [account, page, externalId] = path.split("/").map(decoded);
  const of = { account: account || undefined };
  const kind = kindNames.find((name) => kindTexts[name].resource === page);
  if (kind && externalId) return { ...of, page: "subject", kind, externalId };
  if (kind) {
    const asked = new URLSearchParams(query);
    const { state = "", search = "" } = Object.fromEntries(asked);
    return { ...of, page: "list", kind, state, search };
  }
  return { ...of, page: page === "try" ? "try" : "watch" };
}

/** The address of a view. */
export function hrefOf(account: string, view: View): string {
  const start = `#/${encodeURIComponent(account)}`;
  if (view.page === "watch") return start;
  if (view.page === "try") return `${start}/try`;
  const resource = `${start}/${kindTexts[view.kind].resource}`;
  if (view.page === "subject") return `${resource}/${encodeURIComponent(view.externalId)}`;
  const asked = Object.entries({ state: view.state, search: view.search });
  const query = new URLSearchParams(asked.filter(([, text]) => text !== "")).toString();
  return query === "" ? resource : `${resource}?${query}`;
}

/** The current route; the component renders again when the address changes. */
export function useRoute(): Route {
  const [fragment, setFragment] = useState(() => location.hash);
  useEffect(() => {
    const changed = () => setFragment(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return routeOf(fragment);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
