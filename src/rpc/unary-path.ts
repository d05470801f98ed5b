import { create, type DescMethodUnary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { requireScope } from "../core/authorize.ts";
import { isUtf8Address } from "../net/address-text.ts";
import type { Slot } from "../net/admission.ts";
import type { RequestHead } from "../net/request-head.ts";
import { turnEnd } from "../net/turn-end.ts";
import { addUserMessage } from "./errors.ts";
import { jsonWriterOf } from "./json-writer.ts";
import { type Asked, plainMessage, type UnaryProtocol } from "./protocols.ts";
import { setRateLimit } from "./rate-limit.ts";
import { decodeUnusual, messageOfQuery, notUtf8, receiveBody } from "./request-body.ts";
import { ServedCall, type ServedMethod, type ServingOptions } from "./served-call.ts";

/**
 * Serves a unary call of Connect, gRPC or gRPC-Web: identify, receive, decode, run the use case,
 * encode, record, answer. Connect's own handlers take the same steps by pipelines of iterators and
 * web streams; `test/rpc/unary-path.test.ts` compares the answers with theirs.
 */
export async function serveUnary(
  method: ServedMethod,
  head: RequestHead,
  asked: Asked<UnaryProtocol>,
  slot: Slot,
  options: ServingOptions,
): Promise<void> {
  const answerHeader = new AnswerHeaders();
  const served = new ServedCall(head, method, asked, answerHeader, options);
  const { protocol, compression, query } = asked;
  const isBinary = !protocol.isJson;
  let output: Uint8Array | string | undefined;
  let failure: ConnectError | undefined;

  try {
    const caller = await options.identify(served);
    const call = served.identified(caller, { onWait: slot.leave });
    requireScope(caller, method.method);
    if (query && !isUtf8Address(head.url)) throw notUtf8();
    if (asked.error) throw asked.error;
    const maxBytes = options.readMaxBytes + protocol.extraBytes;
    const body = query
      ? messageOfQuery(query)
      : (head.body.atHand(maxBytes) ?? (await receiveBody(head, maxBytes, options, slot)));
    const plain = plainMessage(body, asked);
    const request = plain
      ? method.decode(plain, isBinary)
      : await decodeUnusual(body, asked, { head, method }, options);
    const result = await method.run(request, call);
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
