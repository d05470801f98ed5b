import { getOption } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { moves_money } from "../gen/payments/v1/options_pb.ts";
import { type Admission, type CallKind, freePlace, type Place } from "../limits/admission.ts";
import { suspendWhileArriving } from "../limits/arrival.ts";
import type { LimitObserver } from "../limits/observer.ts";
import { overloaded } from "../limits/overloaded.ts";
import { toConnectError } from "./errors.ts";
import { createRefusal, type Refuse } from "./refusal.ts";
import type { Request, Response } from "./request.ts";

/** Where calls get in, before anything is spent on them. */
export interface Door {
  /** The call's place; undefined when it was refused, and has its answer. */
  enter(handler: UniversalHandler, request: Request, response: Response): Place | undefined;
}

/** Health is never refused; of streams only their beginning counts. */
export async function createDoor(admission: Admission, observer: LimitObserver): Promise<Door> {
  const error = toConnectError(overloaded(), new AbortController().signal, () => {});
  const refuse: Refuse = await createRefusal(error);
  // Looking an option up costs as much as a refusal.
  const kinds = new Map<UniversalHandler, CallKind | "free">();
  return {
    enter(handler, request, response) {
      const kind = kinds.get(handler) ?? kindOf(handler);
      kinds.set(handler, kind);
      if (kind === "free") return freePlace;
      const place = admission.enter(kind);
      if (!place) {
        observer.onRefused(kind);
        refuse(handler, request, response);
        return undefined;
      }
      if (handler.method.methodKind === "unary") suspendWhileArriving(request, place);
      else place.leave();
      return place;
    },
  };
}

function kindOf({ service, method }: UniversalHandler): CallKind | "free" {
  if (service.typeName === Health.typeName) return "free";
  return getOption(method, moves_money) ? "money" : "other";
}
