import { type ConnectError, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import type { RequestHead } from "../net/request-head.ts";
import { withReadableMessage } from "./grpc-message.ts";

/** Answers a call with the error, without reading its body. */
export type Refuse = (handler: UniversalHandler, head: RequestHead) => void;

/**
 * Encodes one error in advance for every protocol: a gateway that has more calls than it can serve
 * must spend next to nothing on those that it refuses. The bytes are Connect's own, recorded from
 * its refusal of one call of each kind.
 */
export async function createRefusal(error: ConnectError): Promise<Refuse> {
  const made = kinds.flatMap((kind) =>
    contentTypes.map(async (type) => [key(kind, type), await answerOf(error, kind, type)] as const),
  );
  const answers = new Map(await Promise.all(made));

  return (handler, head) => {
    const kind = handler.method.methodKind === "unary" ? "unary" : "server_streaming";
    const type = head.headers["content-type"] ?? "";
    const answer = answers.get(key(kind, type)) ?? answers.get(key("unary", "application/json"));
    if (!answer) throw new Error("no refusal was made");
    head.answer(answer.status, answer.headers, answer.body);
  };
}

const kinds = ["unary", "server_streaming"] as const;
type Kind = (typeof kinds)[number];

const contentTypes = [
  "application/json",
  "application/proto",
  "application/connect+json",
  "application/connect+proto",
  "application/grpc",
  "application/grpc+json",
  "application/grpc+proto",
  "application/grpc-web",
  "application/grpc-web+json",
  "application/grpc-web+proto",
] as const;

function key(kind: Kind, type: string): string {
  return `${kind} ${type}`;
}

interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

async function answerOf(error: ConnectError, kind: Kind, type: string): Promise<RecordedResponse> {
  const router = createConnectRouter({
    requestGate() {
      throw error;
    },
  }).service(Health, {});
  const handler = router.handlers.find(({ method }) => method.methodKind === kind);
  if (!handler) throw new Error(`no method is ${kind}`);
  const { status, header, body, trailer } = await handler({
    httpVersion: "2",
    method: "POST",
    url: `http://localhost${handler.requestPath}`,
    header: new Headers({ "content-type": type }),
    body: (async function* () {})(),
    signal: new AbortController().signal,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk as Uint8Array);
  // gRPC's trailers may go as headers where there is no body ("Trailers-Only").
  const headers = Object.fromEntries([...new Headers(header), ...new Headers(trailer)]);
  return { status, headers: withReadableMessage(headers), body: Buffer.concat(chunks) };
}
