import { useEffect, useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  type CreatePaymentInput,
  PayDocument,
  type PayMutation,
  PaymentPageDocument,
  type PaymentState,
  type WaitUntil,
} from "./documents.ts";
import { type PaymentEvent, watchPayment } from "./watch-payment.ts";

export type PayResult = NonNullable<PayMutation["createPayment"]>;

/**
 * Pays: `const { pay, paying } = usePay()`. The answer comes once the customer has something to do or
 * the payment is settled (`waitUntil: "ACTION"`); an input with another `waitUntil`, or with null, has
 * its own. Switch on the result's `__typename`; an
 * `OutcomeUnknownError` means that the customer must not pay again, and a `Payment` is not paid unless
 * its `state` says so: a decline may be one too. Throws for what is no part of
 * the result, such as a missing scope.
 */
export function usePay() {
  const [{ fetching }, run] = useMutation(PayDocument);
  const pay = async (input: CreatePaymentInput, idempotencyKey: string): Promise<PayResult> => {
    const { data, error } = await run({ input: { waitUntil, ...input, idempotencyKey } });
    if (!data?.createPayment) throw error ?? new Error("the gateway gave no answer");
    return data.createPayment;
  };
  return { pay, paying: fetching };
}

/** What the gateway knows of a payment now; the rest of a page that shows one. */
export function usePayment(externalId: string) {
  const [{ data, fetching, error }] = useQuery({
    query: PaymentPageDocument,
    variables: { externalId },
  });
  return { payment: data?.payment ?? undefined, loading: fetching, error };
}

const waitUntil: WaitUntil = "ACTION";

export interface LivePayment {
  /** Is it paid? As the gateway says, after the last event; undefined until something is known. */
  readonly state: PaymentState | undefined;
  /** The last event; undefined until there is one. */
  readonly event: PaymentEvent | undefined;
  readonly connection: "live" | "reconnecting" | "refused";
}

/** Follows a payment live for as long as the component is there. */
export function useLivePayment(url: string, externalId: string, watchToken: string): LivePayment {
  const [live, setLive] = useState<LivePayment>(nothingYet);
  useEffect(() => {
    setLive(nothingYet);
    return watchPayment(url, externalId, watchToken, {
      onEvent: (event) =>
        setLive(({ connection }) => ({ state: event.state ?? undefined, event, connection })),
      onState: (connection) => setLive((before) => ({ ...before, connection })),
      onRefused: () => setLive((before) => ({ ...before, connection: "refused" })),
    });
  }, [url, externalId, watchToken]);
  return live;
}

const nothingYet: LivePayment = {
  state: undefined,
  event: undefined,
  connection: "reconnecting",
};
