import { useEffect, useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  type CreatePaymentInput,
  PayDocument,
  type PayMutation,
  PaymentPageDocument,
} from "./documents.ts";
import { type PaymentEvent, watchPayment } from "./watch-payment.ts";

export type PayResult = NonNullable<PayMutation["createPayment"]>;

/**
 * Pays: `const { pay, paying } = usePay()`. Switch on the result's `__typename`; an
 * `OutcomeUnknownError` means that the customer must not pay again. Throws for what is no part of
 * the result, such as a missing scope.
 */
export function usePay() {
  const [{ fetching }, run] = useMutation(PayDocument);
  const pay = async (input: CreatePaymentInput, idempotencyKey: string): Promise<PayResult> => {
    const headers = { "idempotency-key": idempotencyKey };
    const { data, error } = await run({ input }, { fetchOptions: { headers } });
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

export interface LivePayment {
  /** The last event; undefined until something is known. */
  readonly event: PaymentEvent | undefined;
  /** Whether it is paid: a later failure of another attempt takes nothing back. */
  readonly paid: boolean;
  readonly state: "live" | "reconnecting" | "refused";
}

/** Follows a payment live for as long as the component is there. */
export function useLivePayment(url: string, externalId: string, watchToken: string): LivePayment {
  const [live, setLive] = useState<LivePayment>(nothingYet);
  useEffect(() => {
    setLive(nothingYet);
    return watchPayment(url, externalId, watchToken, {
      onEvent: (event) =>
        setLive(({ paid, state }) => {
          const isPaid = event.payment?.isSuccess === true;
          return { event, paid: paid || isPaid, state };
        }),
      onState: (state) => setLive((before) => ({ ...before, state })),
      onRefused: () => setLive((before) => ({ ...before, state: "refused" })),
    });
  }, [url, externalId, watchToken]);
  return live;
}

const nothingYet: LivePayment = { event: undefined, paid: false, state: "reconnecting" };
