import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  equals,
  getOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Core } from "../../src/core/core.ts";
import { moves_money } from "../../src/gen/payments/v1/options_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { moneyMethods } from "../../src/model/money-methods.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { isSecret } from "../../src/secrets/secret-fields.ts";
import { start, wires } from "./start.ts";

/** A message with a value in every field, in the first member of each oneof, and at most so deep. */
function filled(desc: DescMessage, depth = 3): Message & Record<string, unknown> {
  const one = (field: DescField): unknown => {
    if (field.message) return filled(field.message, depth - 1);
    if (field.enum) return field.enum.values[1]?.number;
    if (field.scalar === ScalarType.STRING) return `${desc.name} ${field.name}`;
    if (field.scalar === ScalarType.BOOL) return true;
    return field.scalar === ScalarType.INT64 ? 7n : 7;
  };
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const { oneof, localName, fieldKind } = field;
    if (field.message && depth === 0) continue;
    const value = fieldKind === "list" ? [one(field), one(field)] : one(field);
    if (oneof) init[oneof.localName] ??= { case: localName, value };
    else init[localName] = value;
  }
  return create(desc, init as never) as Message & Record<string, unknown>;
}

type Fields = Record<string, unknown>;

/** The page of a list whose rows have these fields beside those of what they list. */
const pageOf = (rows: unknown, nextPageToken: unknown) => ({
  edges: (rows as Fields[]).map(({ externalId, firstSeenAt, updatedAt, ...node }) => {
    return { node, externalId, firstSeenAt, updatedAt };
  }),
  endCursor: nextPageToken,
});

/** What the core returns for a response to be sent: of most methods the same. */
const ofCore: Readonly<Record<string, (response: Fields) => unknown>> = {
  resendCallback: () => undefined,
  watchPayment: ({ event }) => event,
  watchPayout: ({ event }) => event,
  streamEvents: ({ event }) => event,
  findWalletItems: ({ items }) => items,
  getConfirmationStatus: ({ item }) => item,
  getOperation: ({ operation }) => operation,
  listPayments: ({ payments, nextPageToken }) => pageOf(payments, nextPageToken),
  listPayouts: ({ payouts, nextPageToken }) => pageOf(payouts, nextPageToken),
  listEvents: ({ events, nextPageToken: endCursor }) => {
    return { edges: (events as unknown[]).map((node) => ({ node })), endCursor };
  },
};
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);

/** A core whose methods have the names of those of the services. */
const everyAnswer: Partial<Core> = Object.fromEntries(
  methods.map(({ localName, methodKind, output }) => {
    const answer = (ofCore[localName] ?? ((response) => response))(filled(output));
    const streams = async function* () {
      yield answer;
    };
    return [localName, methodKind === "unary" ? async () => answer : streams];
  }),
);

async function callBy(transport: Transport, method: DescMethod, message: Message) {
  if (method.methodKind === "unary") {
    const unary = method as DescMethodUnary;
    return (await transport.unary(unary, undefined, 5000, undefined, message)).message;
  }
  const input = (async function* () {
    yield message;
  })();
  const streaming = method as DescMethodServerStreaming;
  const answer = await transport.stream(streaming, undefined, 5000, undefined, input);
  const messages: Message[] = [];
  for await (const got of answer.message) messages.push(got);
  assert.equal(messages.length, 1);
  return messages[0] as Message;
}

for (const { protocol, httpVersion, name } of wires) {
  test(`every method reaches its use case by ${name}, with every field both ways`, async () => {
    await using started = await start(everyAnswer);
    const transport = started.transport(protocol, httpVersion);
    for (const method of methods) {
      const sent = filled(method.input);
      const got = await callBy(transport, method, sent);
      const [arrived, ...more] = started.calls.splice(0);
      assert.deepEqual([arrived?.method, more], [method.localName, []]);
      assert.ok(equals(method.input, arrived?.request as Message, sent), `${method}: request`);
      assert.ok(equals(method.output, got, filled(method.output)), `${method}: response`);
    }
  });
}

test("no method whose request has a secret answers a GET, whose URL proxies write to their logs", async () => {
  const hasSecret = ({ fields }: DescMessage): boolean =>
    fields.some((field) => isSecret(field) || (field.message && hasSecret(field.message)));
  const methods = services.flatMap((service) => service.methods).filter((m) => hasSecret(m.input));
  assert.ok(methods.includes(WalletService.method.findWalletItems));
  await using started = await start(everyAnswer);
  const query = `?connect=v1&encoding=json&message=${encodeURIComponent('{"customer":{"authToken":"jwt"}}')}`;
  for (const { parent, name } of methods) {
    const { status } = await fetch(`${started.url}/${parent.typeName}/${name}${query}`);
    assert.equal(status, 405, name);
  }
  assert.deepEqual(started.calls, []);
});

test("the calls that move money are those that the proto marks", () => {
  const marked = services
    .flatMap(({ methods }) => methods)
    .filter((method) => getOption(method, moves_money));
  assert.deepEqual(
    new Set(Object.values(moneyMethods).map(({ method }) => method)),
    new Set(marked),
  );
  for (const [name, { method }] of Object.entries(moneyMethods)) assert.equal(method.name, name);
});
