import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
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

/**
 * Serves ordinary calls in the same steps as Connect, without its pipelines of iterators and web
 * streams. Connect serves all other calls.
 */
export interface FastPath {
  /** Returns the function that serves a request; undefined if Connect must serve it. */
  callOf(handler: UniversalHandler, head: RequestHead): FastCall | undefined;
  /** Aborts the calls in flight with UNAVAILABLE, since the gateway shuts down. */
  cut(): void;
}

/**
 * Serves the call. Resolves with undefined once it is answered or its stream has begun. Resolves
 * with the request's body if only Connect can refuse it: then nothing was recorded or answered.
 */
export type FastCall = (slot: Slot) => Promise<Uint8Array | undefined>;

export function createFastPath(given: Omit<ServingOptions, "underWay">): FastPath {
  const options = { ...given, underWay: new UnderWay<AbortController>() };
  const methods = methodsByPath(options);
  return {
    callOf({ requestPath }, head) {
      const method = methods.get(requestPath);
      if (!method || !isPlainPost(head)) return undefined;
      const { headers, httpVersion } = head;
      if (method.method.methodKind === "unary") {
        const asked = unaryRequestOf(headers, httpVersion);
        return asked && ((slot) => serveUnary(method, head, asked, slot, options));
      }
      // Connect handles URLs with a query.
      const asked = head.url === requestPath ? streamRequestOf(headers, httpVersion) : undefined;
      return (
        asked &&
        ((slot) => {
          // A stream gives its slot back when it begins.
          slot.leave();
          return serveStream(method, head, asked, options);
        })
      );
    },
    cut() {
      const shuttingDown = new GatewayError("UNAVAILABLE", "the gateway is shutting down");
      for (const controller of options.underWay) controller.abort(shuttingDown);
    },
  };
}

/** All methods of the contract by request path. */
function methodsByPath({
  core,
  readMaxBytes,
}: Pick<ServingOptions, "core" | "readMaxBytes">): ReadonlyMap<string, ServedMethod> {
  const { binaryOptions, jsonOptions } = codecOptions;
  const limits = { readMaxBytes, writeMaxBytes: 0xffff_ffff };
  const methods = new Map<string, ServedMethod>();
  for (const [service, implementation] of implementations(core)) {
    for (const method of service.methods) {
      const run = implementation[method.localName as keyof typeof implementation] as (
        request: Message,
        context: HandlerContext,
      ) => unknown;
      const codec = createMethodSerializationLookup(method, binaryOptions, jsonOptions, limits);
      const decode = (message: Uint8Array, isBinary: boolean) => {
        if (isBinary) checkBinary(method.input, message);
        return codec.getI(isBinary).parse(message);
      };
      methods.set(`/${service.typeName}/${method.name}`, { service, method, run, decode });
    }
  }
  return methods;
}

/**
 * Whether a request is a POST with a plain authority and no `Expect`; Connect serves all others.
 */
function isPlainPost({ method, headers }: RequestHead): boolean {
  const authority = headers[":authority"]?.toString() ?? headers.host ?? "";
  return method === "POST" && headers.expect === undefined && plainAuthority.test(authority);
}
