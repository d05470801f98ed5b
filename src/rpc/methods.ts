import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import { UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { plainAuthority, type RequestHead } from "../net/request-head.ts";
import { codecOptions } from "./codec-options.ts";
import { streamRequestOf, unaryRequestOf } from "./protocols.ts";
import { checkBinary } from "./request-body.ts";
import type { ServedMethod, ServingOptions } from "./served-call.ts";
import { implementations } from "./services/routes.ts";
import { serveStream } from "./stream-path.ts";
import { serveUnary } from "./unary-path.ts";

/** Serves the methods of the contract, in every protocol, encoding and version of HTTP. */
export interface Methods {
  /** All of them. */
  readonly all: readonly ServedMethod[];
  /** Serves a call. Resolves once it is answered or its stream has begun. */
  serve(method: ServedMethod, head: RequestHead, slot: Slot): Promise<void>;
  /** Aborts the calls in flight with UNAVAILABLE, since the gateway shuts down. */
  cut(): void;
}

export function createMethods(given: Omit<ServingOptions, "underWay">): Methods {
  const options = { ...given, underWay: new UnderWay<AbortController>() };
  return {
    all: methodsOf(options),
    async serve(method, head, slot) {
      const isUnary = method.method.methodKind === "unary";
      // A stream gives its slot back when it begins.
      if (!isUnary) slot.leave();
      if (!namesHost(head)) return refuse(400);
      if (!method.allowedMethods.includes(head.method)) {
        return refuse(405, { allow: method.allowedMethods.join(", ") });
      }
      if (isUnary) {
        const asked = unaryRequestOf(head);
        return asked ? serveUnary(method, head, asked, slot, options) : refuse(415);
      }
      const asked = streamRequestOf(head);
      return asked ? serveStream(method, head, asked, options) : refuse(415);

      function refuse(status: number, headers: Readonly<Record<string, string>> = {}): void {
        slot.leave();
        head.answer(status, { "cache-control": "no-store", ...headers });
      }
    },
    cut() {
      const shuttingDown = new GatewayError("UNAVAILABLE", "the gateway is shutting down");
      for (const controller of options.underWay) controller.abort(shuttingDown);
    },
  };
}

function methodsOf({ core, readMaxBytes }: Pick<ServingOptions, "core" | "readMaxBytes">) {
  const { binaryOptions, jsonOptions } = codecOptions;
  const limits = { readMaxBytes, writeMaxBytes: 0xffff_ffff };
  return implementations(core).flatMap(([service, implementation]) =>
    (service as DescService).methods.map((method: DescMethod): ServedMethod => {
      const run = implementation[
        method.localName as keyof typeof implementation
      ] as ServedMethod["run"];
      const codec = createMethodSerializationLookup(method, binaryOptions, jsonOptions, limits);
      const decode = (message: Uint8Array, isBinary: boolean): Message => {
        if (isBinary) checkBinary(method.input, message);
        return codec.getI(isBinary).parse(message);
      };
      const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      const allowedMethods = isRead ? ["POST", "GET"] : ["POST"];
      const requestPath = `/${service.typeName}/${method.name}`;
      return { service, method, requestPath, allowedMethods, run, decode };
    }),
  );
}

/** Whether a request names its host as a URL can. */
function namesHost({ headers, url }: RequestHead): boolean {
  const authority = headers[":authority"]?.toString() ?? headers.host ?? "";
  return plainAuthority.test(authority) || URL.canParse(url, `http://${authority}`);
}
