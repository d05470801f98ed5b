/**
 * Hive Gateways, each on a free port, in one process of their own. The process that starts it sends
 * the options of each, is told its address, and ends it.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { createGatewayRuntime } from "@graphql-hive/gateway-runtime";

const forwarded = ["authorization", "x-merchant-account", "x-customer-auth"];

process.on("message", async ({ supergraph, timeoutMs, repeatsMutations }) => {
  const router = createGatewayRuntime({
    supergraph,
    logging: false,
    propagateHeaders: {
      fromClientToSubgraphs: ({ request }) =>
        Object.fromEntries(forwarded.map((name) => [name, request.headers.get(name)])),
    },
    // An error of a timeout has the whole request, with card data in it: for nobody else's eyes.
    plugins: () => [
      {
        onExecute: () => ({
          onExecuteDone({ result }) {
            for (const { extensions } of result.errors ?? []) delete extensions.request;
          },
        }),
      },
    ],
    ...(timeoutMs && {
      upstreamTimeout: timeoutMs,
      upstreamRetry: ({ executionRequest }) =>
        repeatsMutations || executionRequest.operationType !== "mutation"
          ? { maxRetries: 1, retryDelay: 10 }
          : undefined,
    }),
  });
  const server = createServer(router);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.send(`http://127.0.0.1:${server.address().port}/graphql`);
});
process.once("disconnect", () => process.exit());
