import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  CreatePaymentRequestSchema,
  GetPaymentRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { askByGrpcJs, grpcJsClient } from "../rpc/start.ts";
import {
  clientOf,
  graphql,
  paymentInput,
  paymentRequest,
  paymentTold,
  sendCallback,
} from "./callers.ts";
import type { Haproxy } from "./haproxy.ts";
import { type Edge, WatchEnd, type Watching, watch } from "./watches.ts";

/** Makes reads, payments and callbacks continuously by every kind of client, without retries. */
export function callOn(proxy: Haproxy, password: string) {
  /** How many calls of each kind were made, and which failed. */
  const made = new Map<string, number>();
  const failures: string[] = [];
  let going = true;
  let n = 0;

  const viaGrpc = grpcJsClient(PaymentService, Number(new URL(proxy.grpcUrl).port));
  const connect = clientOf(PaymentService, proxy, "Connect");
  const query = async (text: string) => {
    const answer = JSON.stringify(await graphql(proxy, text));
    if (/"errors"|Error"/.test(answer)) throw new Error(answer);
  };
  const fresh = () => `none-${n++}`;

  const calls: Record<string, () => Promise<unknown>> = {
    "grpc-js read": () =>
      askByGrpcJs(
        viaGrpc,
        "getPayment",
        create(GetPaymentRequestSchema, { externalId: "none-first" }),
      ),
    "grpc-js payment": () =>
      askByGrpcJs(
        viaGrpc,
        "createPayment",
        create(CreatePaymentRequestSchema, paymentRequest(fresh())),
      ),
    "Connect read": () => connect.getPayment({ externalId: "none-first" }),
    "Connect payment": () => connect.createPayment(paymentRequest(fresh())),
    "GraphQL read": () => query('{ payment(externalId: "none-first") { externalId } }'),
    "GraphQL payment": () =>
      query(`mutation { createPayment(input: ${paymentInput(fresh())}) {
        __typename ... on Error { message }
      } }`),
    callback: () => sendCallback(proxy, paymentTold(`callback-${n++}`), { password }),
  };

  const worker = async (name: string, call: () => Promise<unknown>) => {
    while (going) {
      made.set(name, (made.get(name) ?? 0) + 1);
      await call().catch((error: Error) => failures.push(`${name}: ${error.message}`));
      // With answers that take 50 ms, a third of the workers have a call in flight.
      await delay(100);
    }
  };
  const workers = Object.entries(calls).map(([name, call]) => worker(name, call));
  return {
    made,
    failures,
    /** Makes no further calls, and resolves when those in flight have ended. */
    async stop() {
      going = false;
      await Promise.all(workers);
      viaGrpc.close();
    },
  };
}

/** Reads all events by each kind of stream, from the oldest on, and resumes it whenever it ends. */
export function followOn({ grpcUrl, publicUrl }: Haproxy) {
  const follow = (edge: Edge) => {
    /** Cursors in the order of arrival. */
    const seen: string[] = [];
    /** How each stream ended, other than by `stop`, and how many events it delivered. */
    const ends: { code: string; resumeCursor?: string | undefined; events: number }[] = [];
    let isOver = false;
    let watching: Watching | undefined;
    const run = async () => {
      for (let after = "earliest"; !isOver; ) {
        const before = seen.length;
        watching = watch(edge, { rpcUrl: grpcUrl, publicUrl }, undefined, {
          after,
          isEndless: true,
        });
        const { next } = watching;
        const end = await (async () => {
          for (let cursor = await next(); cursor; cursor = await next()) {
            seen.push(cursor);
            after = cursor;
          }
          return { code: "complete" };
        })().catch((error: Error) =>
          error instanceof WatchEnd ? error : { code: error.message || String(error) },
        );
        if (isOver) return;
        const { code, resumeCursor } = end as WatchEnd;
        ends.push({ code, resumeCursor, events: seen.length - before });
        // The gateway's resume cursor may be later than the last event: it skips other topics.
        after = resumeCursor ?? after;
        await delay(20);
      }
    };
    const running = run();
    return {
      seen,
      ends,
      async stop() {
        isOver = true;
        await watching?.leave();
        await running;
      },
    };
  };
  return { gRPC: follow("gRPC"), SSE: follow("SSE"), WebSocket: follow("WebSocket") };
}
