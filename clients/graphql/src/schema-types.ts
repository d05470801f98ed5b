// Generated from schema.graphql.

/** The types of each interface and union. */
export const possibleTypes: Record<string, string[]> = {
  "ConfirmPaymentResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "Payment",
    "PaymentServiceError",
    "RateLimitError"
  ],
  "CreatePaymentResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "Payment",
    "PaymentServiceError",
    "RateLimitError"
  ],
  "CreateRecurrentPaymentResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "Payment",
    "PaymentServiceError",
    "RateLimitError"
  ],
  "CreateWatchTokenResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "RateLimitError",
    "WatchToken"
  ],
  "DeactivateSubscriptionResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "RateLimitError",
    "SubscriptionMessage"
  ],
  "DeleteWalletItemResult": [
    "DeletedWalletItem",
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "RateLimitError"
  ],
  "Error": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "RateLimitError"
  ],
  "Event": [
    "PaymentEvent",
    "PayoutEvent"
  ],
  "RequestPayoutResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "Payout",
    "RateLimitError"
  ],
  "ResendCallbackResult": [
    "CallbackResent",
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "RateLimitError"
  ],
  "UpdateSubscriptionResult": [
    "InvalidInputError",
    "OutcomeUnknownError",
    "PaymentServiceError",
    "RateLimitError",
    "SubscriptionMessage"
  ]
};

export const objectTypes: readonly string[] = [
  "Action",
  "CallbackResent",
  "CardToken",
  "DeletedWalletItem",
  "Fee",
  "Fiscalization",
  "InvalidField",
  "InvalidInputError",
  "Mutation",
  "Operation",
  "OperationDetails",
  "OperationSummary",
  "OutcomeUnknownError",
  "PageInfo",
  "PayerAccount",
  "Payment",
  "PaymentConnection",
  "PaymentCustomer",
  "PaymentDetails",
  "PaymentEdge",
  "PaymentEvent",
  "PaymentEventConnection",
  "PaymentEventEdge",
  "PaymentMethod",
  "PaymentServiceError",
  "PaymentSnapshot",
  "Payout",
  "PayoutConnection",
  "PayoutEdge",
  "PayoutEvent",
  "PayoutEventConnection",
  "PayoutEventEdge",
  "PayoutSnapshot",
  "Query",
  "RateLimit",
  "RateLimitError",
  "RecipientUser",
  "Subscription",
  "SubscriptionMessage",
  "UnrecognizedValue",
  "WalletCard",
  "WalletItem",
  "WalletPayCard",
  "WatchToken"
];
