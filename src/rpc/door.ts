import { getOption } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { moves_money } from "../gen/payments/v1/options_pb.ts";
import type { Admission, CallKind, Place } from "../limits/admission.ts";
import { suspendWhileArriving } from "../limits/arrival.ts";
import type { LimitObserver } from "../limits/observer.ts";
import { overloaded } from "../limits/overloaded.ts";
import { toConnectError } from "./errors.ts";
import { reflectionServices } from "./reflection.ts";
import { createRefusal, type Refuse } from "./refusal.ts";
import type { Request, Response } from "./request.ts";

/** Where calls get in, before anything is spent on them. */
export interface Door {
  /** Begins a call in its turn, or answers it with a refusal. */
  enter(call: Knock): void;
}

export interface Knock {
  readonly handler: UniversalHandler;
  readonly request: Request;
  readonly response: Response;
  readonly start: (place: Place) => void;
}

/** Health is never refused. A stream takes no place once it has begun. */
export async function createDoor(admission: Admission, observer: LimitObserver): Promise<Door> {
  const error = toConnectError(overloaded(), new AbortController().signal, () => {});
  const refuse: Refuse = await createRefusal(error);
  // Looking an option up costs as much as a refusal.
  const kinds = new Map<UniversalHandler, CallKind>();
  const openStreams = new WeakMap<object, number>();

  /** Whether a connection may have another stream for which nobody has to say who is calling. */
  function takesOpenStream(connection: object, response: Response): boolean {
    const count = openStreams.get(connection) ?? 0;
    if (count >= openStreamsPerConnection) return false;
    openStreams.set(connection, count + 1);
    response.once("close", () =>
      openStreams.set(connection, (openStreams.get(connection) ?? 1) - 1),
    );
    return true;
  }

  return {
    enter({ handler, request, response, start }) {
      const kind = kinds.get(handler) ?? kindOf(handler);
      kinds.set(handler, kind);
      const unary = handler.method.methodKind === "unary";
      const connection =
        ("stream" in request ? request.stream.session : undefined) ?? request.socket;
      // What happens to a call before its turn is nobody's error.
      request.on("error", () => {});
      if (!unary && openServices.has(handler.service.typeName)) {
        if (!takesOpenStream(connection, response)) {
          observer.onCut("open_streams");
          refuse(handler, request, response);
          return;
        }
      }
      admission.enter({
        kind,
        owner: connection,
        isGone: () => ("stream" in request ? request.stream.closed : request.socket.destroyed),
        start(place) {
          if (unary) suspendWhileArriving(request, place);
          else place.leave();
          start(place);
        },
        refuse() {
          observer.onRefused(kind);
          refuse(handler, request, response);
        },
      });
    },
  };
}

/** A client watches the health of a service or two on each of its connections. */
export const openStreamsPerConnection = 10;
const openServices = new Set([Health, ...reflectionServices].map(({ typeName }) => typeName));

function kindOf({ service, method }: UniversalHandler): CallKind {
  if (service.typeName === Health.typeName) return "exempt";
  return getOption(method, moves_money) ? "money" : "other";
}
