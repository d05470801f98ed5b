import { create, type DescMethodUnary, toBinary } from "@bufbuild/protobuf";
import type { GatewayError } from "../errors.ts";
import { turnEnd } from "../net/turn-end.ts";
import { toConnectError } from "./errors.ts";
import { jsonWriterOf } from "./json-writer.ts";
import type { ArrivedCall, ServedMethod } from "./methods.ts";
import { failureOf, successOf } from "./protocols.ts";
import { ServedCall } from "./served-call.ts";

/**
 * Serves a unary call of Connect, gRPC or gRPC-Web: run, encode, record, answer. Connect's own
 * handlers take the same steps by pipelines of iterators and web streams;
 * `test/rpc/unary-path.test.ts` compares the answers with theirs.
 */
export async function serveUnary(arrived: ArrivedCall): Promise<void> {
  const { method, head, slot } = arrived;
  const { protocol, compression } = arrived.asked;
  const served = new ServedCall(arrived);
  let output: Uint8Array | string = "";
  let failure: GatewayError | undefined;

  try {
    const result = await served.result(arrived, { onWait: slot.leave });
    output = encoded(method, result as Result, !protocol.isJson);
  } catch (error) {
    failure = served.failed(error);
  }
  slot.leave();
  served.setRateLimit();
  served.end(failure);
  const language = method.isOpen ? undefined : served.header("accept-language");
  const { answerHeaders } = served;
  const answer = failure
    ? failureOf(protocol, toConnectError(failure, language), answerHeaders)
    : successOf(protocol, output, answerHeaders, compression);
  await turnEnd();
  head.send(answer);
}

type Result = Parameters<typeof create<DescMethodUnary["output"]>>[1];

function encoded({ method }: ServedMethod, result: Result, isBinary: boolean): Uint8Array | string {
  const answer = create(method.output, result);
  return isBinary ? toBinary(method.output, answer) : jsonWriterOf(method.output)(answer);
}
