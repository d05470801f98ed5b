import { durationFromMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import type { Environment } from "../config/environment.ts";
import { duration } from "../config/kinds.ts";
import { EventService } from "../gen/payments/v1/event_service_pb.ts";
import { type KindName, kindNamed, kindNames } from "../model/kinds.ts";
import { onGateway } from "./gateway-client.ts";
import {
  addGatewayOptions,
  credentialsHelp,
  type GatewayOptions,
  readAs,
} from "./gateway-options.ts";
import { note, paint, print, printJson } from "./terminal.ts";

const help = `
Its holder may watch this one payment or payout, and nothing else: for a browser's EventSource,
which gives it as ?watch_token=. A running gateway makes it, for who has the scope watch:create.

${credentialsHelp}

Exit codes: 0 made, 1 refused, 64 wrong usage, 69 no gateway there.

Examples:
  $ payments-gateway token --external-id order-1
  $ payments-gateway token --external-id payout-7 --kind payout --ttl 1h --json`;

interface Options extends GatewayOptions {
  readonly externalId: string;
  readonly kind: KindName;
  readonly ttl: number;
  readonly json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  addGatewayOptions(
    command
      .requiredOption("--external-id <id>", "of the payment or payout; it need not exist yet")
      .addOption(new Option("--kind <kind>", "what it is").choices(kindNames).default("payment"))
      .addOption(
        new Option("--ttl <duration>", "how long it is good for, 1s to 24h")
          .argParser(readAs(duration({ max: "24h" })))
          .default(900_000, "15m"),
      )
      .option("--json", "print {token, expires_at}"),
  )
    .addHelpText("after", help)
    .action((options: Options) => token(options, env));
}

async function token(options: Options, env: Environment): Promise<void> {
  const { externalId, kind } = options;
  const request = { externalId, kind: kindNamed(kind), ttl: durationFromMs(options.ttl) };
  const { token, expiresAt } = await onGateway(options, env, (transport) =>
    createClient(EventService, transport).createWatchToken(request, { timeoutMs: 10_000 }),
  );
  const until = expiresAt ? timestampDate(expiresAt).toISOString() : "";
  if (options.json) return printJson({ token, expires_at: until });
  print(token);
  note(paint("dim", `good until ${until}`, process.stderr));
}
