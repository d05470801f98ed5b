import type { StreamObserver } from "../core/observed-streams.ts";
import type { GraphqlObserver } from "../graphql/operation-record.ts";
import type { RpcObserver } from "../rpc/call-record.ts";
import type { Metrics } from "./metrics.ts";

/** What the edges tell, as metrics; their log records they write themselves. */
export function rpcObserver(metrics: Metrics): RpcObserver {
  return {
    onCall({ service, method, unary }) {
      metrics.rpcInFlight.inc({ service, method });
      return ({ code, durationMs }) => {
        metrics.rpcInFlight.dec({ service, method });
        metrics.rpcRequests.inc({ service, method, code });
        if (code === "INTERNAL") metrics.internalErrors.inc({ edge: "rpc" });
        if (unary) metrics.rpcSeconds.observe({ service, method, code }, durationMs / 1_000);
      };
    },
  };
}

export function graphqlObserver(metrics: Metrics): GraphqlObserver {
  return {
    onOperation(connection) {
      metrics.graphqlInFlight.inc({ connection });
      return ({ type, field, transport, code, durationMs }) => {
        metrics.graphqlInFlight.dec({ connection });
        metrics.graphqlOperations.inc({ type, field, transport, code });
        if (code === "INTERNAL_SERVER_ERROR") metrics.internalErrors.inc({ edge: "graphql" });
        if (type === "subscription") return;
        metrics.graphqlSeconds.observe({ type, field, code }, durationMs / 1_000);
      };
    },
  };
}

export function streamObserver(metrics: Metrics): StreamObserver {
  return {
    onStream(transport) {
      metrics.watchers.inc({ transport });
      return {
        delivered: () => metrics.watchEvents.inc({ transport }),
        ended(reason, detail) {
          metrics.watchers.dec({ transport });
          metrics.watchesEnded.inc({ transport, reason });
          if (detail === "SLOW_CONSUMER") metrics.slowConsumers.inc({ transport });
        },
      };
    },
  };
}
