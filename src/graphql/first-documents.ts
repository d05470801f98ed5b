/**
 * The documents that GraphiQL opens with, one per tab. They run unchanged, in this order, against a
 * gateway that has just started with the sandbox.
 */
export const firstDocuments: readonly { readonly query: string }[] = [
  {
    query: `# Ctrl-Enter runs it, Ctrl-Space completes.
# A key goes under Headers, below:
# {"authorization": "Bearer <key>"}
# An order is paid once: change externalId
# for another payment.
mutation Pay {
  createPayment(
    input: {
      externalId: "my-first-order"
      amount: "10.10"
      currency: "UAH"
      mode: DIRECT
      customer: { email: "jo@example.com" }
      paymentMethod: {
        method: {
          cc: {
            number: "4111111111111111"
            cvv: "123"
            expMonth: 12
            expYear: 2031
          }
        }
      }
    }
  ) {
    __typename
    ... on Payment {
      state
    }
    ... on Error {
      message
    }
  }
}
`,
  },
  {
    query: `# What is known of the payment, and what happened to it.
query LookItUp {
  payment(externalId: "my-first-order") {
    state
    eventsConnection(first: 5, newestFirst: true) {
      edges {
        node {
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
    query: `# The payment's state now, and each change as it comes.
# It goes on until you stop it.
subscription Watch {
  paymentUpdated(externalId: "my-first-order") {
    state
    payment {
      operation
    }
  }
}
`,
  },
];
