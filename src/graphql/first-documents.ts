/**
 * The documents that GraphiQL opens with, one per tab. They run unchanged against a gateway that
 * has just started.
 */
export const firstDocuments: readonly { readonly query: string }[] = [
  {
    query: `# Ctrl-Enter runs it, Ctrl-Space completes.
# A key goes under Headers, below:
# {"authorization": "Bearer <key>"}
query FirstLook {
  rateLimit {
    limit
    remaining
    resetSeconds
  }
  payment(externalId: "order-1") {
    state
    details {
      amount
      currency
    }
    eventsConnection(first: 5, newestFirst: true) {
      edges {
        node {
          receivedAt
          source
          state
        }
      }
    }
  }
}
`,
  },
  {
    query: `# All payments and payouts, live.
# It goes on until you stop it.
subscription Live {
  events {
    cursor
    externalId
    receivedAt
    ... on PaymentEvent {
      state
      payment {
        operation
      }
    }
    ... on PayoutEvent {
      payoutState: state
      payout {
        status
      }
    }
  }
}
`,
  },
];
