import { requireScope } from "../core/authorize.ts";
import { isUtf8Address } from "../net/address-text.ts";
import { invalid } from "./decode-errors.ts";
import { decodeRequest } from "./decode-request.ts";
import { isBidi, type OpenCall, type ServiceCall } from "./methods.ts";
import { plainMessage } from "./protocols.ts";
import { decodeUnusual, messageOfQuery, messagesOf, receiveBody } from "./request-body.ts";
import type { ArrivedCall, ServedCall } from "./served-call.ts";

/**
 * Takes the steps from a call's headers to its result: identify, receive, decode, run the use case.
 * @param hooks the callbacks by which the core and the services act on the call's answer
 * @throws the error of any step
 */
export async function resultOf(
  served: ServedCall,
  arrived: ArrivedCall,
  hooks: Partial<ServiceCall>,
): Promise<unknown> {
  const { method, head, asked, options } = arrived;
  const { protocol, query } = asked;
  const isUnary = method.method.methodKind === "unary";
  let call: ServiceCall | OpenCall = served;
  if (!method.isOpen) {
    const caller = await options.identify({ header: (name) => served.header(name) });
    call = served.identified(caller, hooks);
    // The headers of a stream leave before its result is there.
    if (!isUnary) served.setRateLimit();
    requireScope(caller, method.method);
    if (head.url !== method.requestPath && !isUtf8Address(head.url)) {
      throw invalid("the address must be percent-encoded UTF-8");
    }
  }
  if (asked.error) throw asked.error;
  if (isBidi(method)) return method.run(messagesOf(arrived, served.signal), call);
  const maxBytes = method.readMaxBytes + protocol.extraBytes;
  const body = query
    ? messageOfQuery(query)
    : (head.body.atHand(maxBytes) ?? (await receiveBody(arrived, maxBytes)));
  const plain = plainMessage(body, asked);
  const request = plain
    ? decodeRequest(method.method.input, plain, protocol.isJson)
    : await decodeUnusual(body, arrived);
  return method.run(request, call);
}
