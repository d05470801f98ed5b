import { create, type DescMethodUnary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { turnEnd } from "../net/turn-end.ts";
import { resultOf } from "./call-result.ts";
import { addUserMessage } from "./errors.ts";
import { jsonWriterOf } from "./json-writer.ts";
import type { UnaryProtocol } from "./protocols.ts";
import { type ArrivedCall, ServedCall, type ServedMethod } from "./served-call.ts";

/**
 * Serves a unary call of Connect, gRPC or gRPC-Web: run, encode, record, answer. Connect's own
 * handlers take the same steps by pipelines of iterators and web streams;
 * `test/rpc/unary-path.test.ts` compares the answers with theirs.
 */
export async function serveUnary(arrived: ArrivedCall<UnaryProtocol>): Promise<void> {
  const { method, head, slot } = arrived;
  const { protocol, compression } = arrived.asked;
  const answerHeader = new AnswerHeaders();
  const served = new ServedCall(arrived, answerHeader);
  let output: Uint8Array | string | undefined;
  let failure: ConnectError | undefined;

  try {
    const result = await resultOf(served, arrived, { onWait: slot.leave });
    output = encoded(method, result as Result, !protocol.isJson);
  } catch (error) {
    failure = served.failed(error);
    if (!method.isOpen) addUserMessage(failure, served.get("accept-language"));
  }
  slot.leave();
  served.setRateLimit();
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
  return isBinary ? toBinary(method.output, answer) : jsonWriterOf(method.output)(answer);
}
