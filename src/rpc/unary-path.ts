import { create, type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { UnderWay } from "../collections/under-way.ts";
import { requireScope } from "../core/authorize.ts";
import type { Call } from "../core/core.ts";
import type { Slot } from "../net/admission.ts";
import type { RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { turnEnd } from "../net/turn-end.ts";
import { CallLife, shuttingDown } from "./call-life.ts";
import type { CallRecord } from "./call-record.ts";
import { addUserMessage, toConnectError } from "./errors.ts";
import {
  beginRecord,
  type FastPath,
  type FastPathOptions,
  isPlainPost,
  type MethodNames,
  methodsByPath,
  prepare,
  type Served,
  textOf,
} from "./fast-path.ts";
import { idempotencyOf, setGatedCall } from "./gated-call.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { rateLimitOf } from "./rate-limit.ts";
import { receiveBody } from "./request-body.ts";
import { protocolOf, type UnaryProtocol } from "./unary-protocols.ts";

/**
 * The fast path of nearly every call: a unary POST of Connect, gRPC or gRPC-Web whose message
 * is not compressed. It takes the same steps as Connect's own path, without its pipelines of
 * iterators and web streams: identify, receive, decode, run the use case, encode, record, answer.
 * `test/rpc/unary-path.test.ts` sends the same requests both ways and checks that the answers are
 * equal.
 */
export function createUnaryPath(options: FastPathOptions): FastPath {
  const methods = unaryMethods(options);
  const underWay = new UnderWay<AbortController>();

  async function serve(
    method: UnaryMethod,
    head: RequestHead,
    protocol: UnaryProtocol,
    slot: Slot,
  ): Promise<Uint8Array | undefined> {
    const startedMs = performance.now();
    const { headers } = head;
    const deadlineMs =
      protocol.timeoutMs === undefined ? undefined : Date.now() + protocol.timeoutMs;
    const requestId = requestIdOf(textOf(headers, requestIdHeader));
    const answerHeaders: Record<string, string> = {
      "cache-control": "no-store",
      [requestIdHeader]: requestId,
    };
    const answerHeader = {
      set(name: string, value: string) {
        answerHeaders[name] = value;
      },
    };
    const life = new CallLife(head, protocol.timeoutMs, underWay);
    let record: CallRecord | undefined;
    let call: Call | undefined;
    let output: Uint8Array | string | undefined;
    let failure: ConnectError | undefined;
    const names = { ...method.names, protocolName: protocol.name };
    const begun = { ...names, signal: life.signal, requestId, startedMs };

    try {
      const caller = await options.identify({ get: (name) => textOf(headers, name) });
      call = {
        caller,
        signal: life.signal,
        requestId,
        onAbout: (externalId) => {
          if (record) record.externalId = externalId;
        },
        transport: protocol.name,
        onWait: slot.leave,
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
        ...idempotencyOf(textOf(headers, "idempotency-key"), answerHeader),
      };
      requireScope(caller, method.names.method);
      const maxBytes = protocol.maxBodyBytes(options.readMaxBytes);
      const body = head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, options, slot));
      const input = protocol.messageIn(body);
      if (input === undefined) {
        life.end();
        return body;
      }
      record = beginRecord(begun, options, caller);
      const values = createContextValues();
      setGatedCall(values, { record, answerHeader, call });
      output = await method.run(input, protocol.binary, { values, signal: life.signal });
    } catch (error) {
      record ??= beginRecord(begun, options, call?.caller);
      prepare(error, method.names, answerHeader, call !== undefined);
      failure = toConnectError(error, life.signal, record.unknown);
      addUserMessage(failure, textOf(headers, "accept-language"));
    }
    life.end();
    slot.leave();
    if (call) Object.assign(answerHeaders, rateLimitOf(options.core, call, method.names.method));
    record?.settle(failure);
    const answer =
      output === undefined || failure
        ? protocol.fail(failure ?? new ConnectError("internal error", Code.Internal), answerHeaders)
        : protocol.succeed(output, answerHeaders);
    const ready = answer instanceof Promise ? await answer : answer;
    await turnEnd();
    head.send(ready);
    return undefined;
  }

  return {
    callOf(handler, head) {
      const method = methods.get(handler.requestPath);
      if (!method || !isPlainPost(head)) return undefined;
      const protocol = protocolOf(head.headers, head.httpVersion);
      return protocol && ((slot) => serve(method, head, protocol, slot));
    },
    cut() {
      for (const controller of underWay) controller.abort(shuttingDown());
    },
  };
}

interface UnaryMethod {
  readonly names: MethodNames;
  /** Decodes the request, runs the use case and encodes its answer. */
  run(
    input: Uint8Array,
    binary: boolean,
    context: Pick<HandlerContext, "values" | "signal">,
  ): Promise<Uint8Array | string>;
}

function unaryMethods(options: FastPathOptions): Map<string, UnaryMethod> {
  return methodsByPath(options, "unary", (method, { run, decode }: Served<Handler>) => {
    const writeJson = jsonWriterOf(method.output);
    return {
      async run(input, binary, context) {
        const request = decode(input, binary);
        // The services' handlers read nothing else of their context.
        const result = await run(request, context as HandlerContext);
        const answer = create(method.output, result);
        try {
          return binary ? toBinary(method.output, answer) : writeJson(answer);
        } catch (error) {
          throw ConnectError.from(error, Code.Internal);
        }
      },
    } satisfies Pick<UnaryMethod, "run">;
  });
}

type Handler = (
  request: Message,
  context: HandlerContext,
) => Promise<Parameters<typeof create<DescMethodUnary["output"]>>[1]>;
