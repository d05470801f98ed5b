import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Core, methods as contract } from "../src/core/core.ts";
import { OperationSchema } from "../src/gen/payments/v1/operation_pb.ts";
import { DeletedWalletItemSchema, WalletItemSchema } from "../src/gen/payments/v1/wallet_pb.ts";

/** One call that reached the core. */
export interface Seen {
  readonly method: keyof Core;
  readonly request: unknown;
  readonly call: Call;
}

/** The messages that use cases return, or lists of them. */
const answers = {
  getPayment: contract.getPayment.output,
  getPayout: contract.getPayout.output,
  resendCallback: contract.resendCallback.output,
  updateSubscription: contract.updateSubscription.output,
  deactivateSubscription: contract.deactivateSubscription.output,
  createWatchToken: contract.createWatchToken.output,
  getOperation: OperationSchema,
  findWalletItems: WalletItemSchema,
  getConfirmationStatus: WalletItemSchema,
  deleteWalletItem: DeletedWalletItemSchema,
};
type Answers = typeof answers;
type Fields<Name extends keyof Answers> = MessageInitShape<Answers[Name]>;

/** Methods of a core, which may return the fields of a message in place of it. */
export type FakeMethods = {
  [Name in keyof Core]?: Name extends keyof Answers
    ? (
        ...given: Parameters<Core[Name]>
      ) => Promise<
        | (Name extends "findWalletItems" ? Fields<Name>[] : Fields<Name>)
        | (Name extends "getConfirmationStatus" ? undefined : never)
      >
    : Core[Name];
};

/** A list without anything in it. */
export const emptyPage = async () => ({ edges: [], hasNextPage: false, hasPreviousPage: false });

/**
 * A core with the methods that a test passes, and `rateLimit`. A call of any other method
 * throws. `seen` records all calls but those of `rateLimit`, which each response causes.
 */
export function fakeCore(methods: FakeMethods, seen: Seen[]): Core {
  const all: FakeMethods = {
    rateLimit: () => ({ limit: 10, remaining: 7, remainingForReads: 5, resetSeconds: 1 }),
    ...methods,
  };
  return new Proxy(all as Core, {
    get(target, name: keyof Core) {
      const method = target[name] as ((request: unknown, call: Call) => unknown) | undefined;
      if (name === "rateLimit") return method;
      return (request: unknown, call: Call) => {
        if (!method) throw new Error(`the test did not expect ${name}`);
        seen.push({ method: name, request, call });
        const answer = method(request, call);
        const schema = name in answers ? answers[name as keyof Answers] : undefined;
        return schema && answer instanceof Promise ? answer.then(messagesOf(schema)) : answer;
      };
    },
  });
}

const messagesOf = (schema: DescMessage) => (fields: Record<string, unknown> | undefined) =>
  Array.isArray(fields)
    ? fields.map((one) => create(schema, one))
    : fields && create(schema, fields);
