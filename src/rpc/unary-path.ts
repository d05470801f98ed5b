import { create, type DescMethodUnary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { requireScope } from "../core/authorize.ts";
import type { Slot } from "../net/admission.ts";
import type { RequestHead } from "../net/request-head.ts";
import { turnEnd } from "../net/turn-end.ts";
import { addUserMessage } from "./errors.ts";
import { jsonWriterOf } from "./json-writer.ts";
import type { Asked, UnaryProtocol } from "./protocols.ts";
import { setRateLimit } from "./rate-limit.ts";
import { receiveBody } from "./request-body.ts";
import { ServedCall, type ServedMethod, type ServingOptions } from "./served-call.ts";

/**
 * The fast path of nearly every call: a unary POST of Connect, gRPC or gRPC-Web whose message
 * is not compressed. It takes the same steps as Connect's own path, without its pipelines of
 * iterators and web streams: identify, receive, decode, run the use case, encode, record, answer.
 * `test/rpc/unary-path.test.ts` sends the same requests both ways and checks that the answers are
 * equal.
 */
export async function serveUnary(
  method: ServedMethod,
  head: RequestHead,
  asked: Asked<UnaryProtocol>,
  slot: Slot,
  options: ServingOptions,
): Promise<Uint8Array | undefined> {
  const answerHeader = new AnswerHeaders();
  const served = new ServedCall(head, method, asked, answerHeader, options);
  const { protocol, compression } = asked;
  const isBinary = !protocol.isJson;
  let output: Uint8Array | string | undefined;
  let failure: ConnectError | undefined;

  try {
    const caller = await options.identify(served);
    const call = served.identified(caller, { onWait: slot.leave });
    requireScope(caller, method.method);
    const maxBytes = options.readMaxBytes + protocol.extraBytes;
    const body = head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, options, slot));
    const input = protocol.messageIn(body);
    if (input === undefined) {
      served.leave();
      return body;
    }
    const context = { values: served.begin(call), signal: served.signal };
    const request = method.decode(input, isBinary);
    // The services' handlers read nothing else of their context.
    const result = await method.run(request, context as HandlerContext);
    output = encoded(method, result as Result, isBinary);
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
      ? protocol.fail(
          failure ?? new ConnectError("internal error", Code.Internal),
          fields,
          compression,
        )
      : protocol.succeed(output, fields, compression);
  const ready = answer instanceof Promise ? await answer : answer;
  await turnEnd();
  head.send(ready);
  return undefined;
}

class AnswerHeaders {
  readonly fields: Record<string, string> = {};

  set(name: string, value: string): void {
    this.fields[name] = value;
  }
}

type Result = Parameters<typeof create<DescMethodUnary["output"]>>[1];

function encoded({ method }: ServedMethod, result: Result, isBinary: boolean): Uint8Array | string {
  const answer = create(method.output, result);
  try {
    return isBinary ? toBinary(method.output, answer) : jsonWriterOf(method.output)(answer);
  } catch (error) {
    throw ConnectError.from(error, Code.Internal);
  }
}
