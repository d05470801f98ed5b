import { create, type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { UnderWay } from "../collections/under-way.ts";
import { requireScope } from "../core/authorize.ts";
import type { Slot } from "../net/admission.ts";
import type { RequestHead } from "../net/request-head.ts";
import { turnEnd } from "../net/turn-end.ts";
import { shuttingDown } from "./call-life.ts";
import { addUserMessage } from "./errors.ts";
import {
  type FastPath,
  type FastPathOptions,
  isPlainPost,
  methodsByPath,
  ServedCall,
  type ServedMethod,
} from "./fast-path.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { setRateLimit } from "./rate-limit.ts";
import { receiveBody } from "./request-body.ts";
import { protocolOf, type UnaryProtocol } from "./protocols.ts";

/**
 * The fast path of nearly every call: a unary POST of Connect, gRPC or gRPC-Web whose message
 * is not compressed. It takes the same steps as Connect's own path, without its pipelines of
 * iterators and web streams: identify, receive, decode, run the use case, encode, record, answer.
 * `test/rpc/unary-path.test.ts` sends the same requests both ways and checks that the answers are
 * equal.
 */
export function createUnaryPath(options: FastPathOptions): FastPath {
  const methods = methodsByPath<Handler>(options, "unary");
  const underWay = new UnderWay<AbortController>();

  async function serve(
    method: UnaryMethod,
    head: RequestHead,
    protocol: UnaryProtocol,
    slot: Slot,
  ): Promise<Uint8Array | undefined> {
    const answerHeader = new AnswerHeaders();
    const served = new ServedCall(head, method, protocol, underWay, answerHeader, options);
    const { binary } = protocol;
    let output: Uint8Array | string | undefined;
    let failure: ConnectError | undefined;

    try {
      const caller = await options.identify(served);
      const call = served.identified(caller, { onWait: slot.leave });
      requireScope(caller, method.method);
      const maxBytes = protocol.maxBodyBytes(options.readMaxBytes);
      const body = head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, options, slot));
      const input = protocol.messageIn(body);
      if (input === undefined) {
        served.leave();
        return body;
      }
      const context = { values: served.begin(call), signal: served.signal };
      const request = method.decode(input, binary);
      // The services' handlers read nothing else of their context.
      output = encoded(method, await method.run(request, context as HandlerContext), binary);
    } catch (error) {
      failure = served.failed(error);
      addUserMessage(failure, served.get("accept-language"));
    }
    slot.leave();
    const { call } = served;
    if (call) setRateLimit(answerHeader, options.core, call, method.method);
    served.end(failure);
    const { fields } = answerHeader;
    const answer =
      output === undefined || failure
        ? protocol.fail(failure ?? new ConnectError("internal error", Code.Internal), fields)
        : protocol.succeed(output, fields);
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

class AnswerHeaders {
  readonly fields: Record<string, string> = {};

  set(name: string, value: string): void {
    this.fields[name] = value;
  }
}

type UnaryMethod = ServedMethod<Handler>;

type Handler = (request: Message, context: HandlerContext) => Promise<Result>;

type Result = Parameters<typeof create<DescMethodUnary["output"]>>[1];

function encoded({ method }: UnaryMethod, result: Result, binary: boolean): Uint8Array | string {
  const answer = create(method.output, result);
  try {
    return binary ? toBinary(method.output, answer) : jsonWriterOf(method.output)(answer);
  } catch (error) {
    throw ConnectError.from(error, Code.Internal);
  }
}
