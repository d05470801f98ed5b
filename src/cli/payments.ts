import type { DescEnum } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import type { Environment } from "../config/environment.ts";
import { duration } from "../config/kinds.ts";
import { PaymentStateSchema } from "../gen/payments/v1/payment_pb.ts";
import { type ListedPayment, PaymentService } from "../gen/payments/v1/payment_service_pb.ts";
import { PayoutStateSchema } from "../gen/payments/v1/payout_pb.ts";
import { type ListedPayout, PayoutService } from "../gen/payments/v1/payout_service_pb.ts";
import { onGateway } from "./gateway-client.ts";
import {
  addGatewayOptions,
  credentialsHelp,
  type GatewayOptions,
  readAs,
  wholeNumber,
} from "./gateway-options.ts";
import { note, paint, print, printable, printJson } from "./terminal.ts";

const help = (resource: Resource) => `
Lists what the gateway knows, the ${resource} that it heard of last first. A running gateway lists
them, for who has the scope events:read, and does not ask the payments service.

${credentialsHelp}

Exit codes: 0 listed, 1 refused, 64 wrong usage, 69 no gateway there.

Examples:
  $ payments-gateway ${resource} --state unknown
  $ payments-gateway ${resource} --needs-operator --json
  $ payments-gateway ${resource} --state pending failed --since 24h --limit 50`;

interface Options extends GatewayOptions {
  readonly state?: readonly string[];
  readonly needsOperator?: boolean;
  readonly since?: number;
  readonly limit?: number;
  readonly json?: boolean;
}

type Resource = keyof typeof resources;

/** For the commands `payments` and `payouts`. */
export function configure(command: Command, env: Environment): void {
  const resource = command.name() as Resource;
  addGatewayOptions(
    command
      .addOption(
        new Option("--state <states...>", "only those in one of these states").choices(
          resources[resource].states.values
            .filter(({ number }) => number !== 0)
            .map(({ localName }) => localName.toLowerCase()),
        ),
      )
      .option("--needs-operator", "only those of which an operator has to find out the outcome")
      .option(
        "--since <duration>",
        "only those first heard of within this time, such as 24h",
        readAs(duration()),
      )
      .option("--limit <n>", "no more than so many", wholeNumber)
      .option("--json", "one JSON object a line"),
  )
    .addHelpText("after", help(resource))
    .action((options: Options) => list(resource, options, env));
}

type Listed = ListedPayment | ListedPayout;

const timeoutMs = 10_000;

const resources = {
  payments: {
    states: PaymentStateSchema as DescEnum,
    clientOf: (transport: Transport) => createClient(PaymentService, transport).listPayments,
  },
  payouts: {
    states: PayoutStateSchema as DescEnum,
    clientOf: (transport: Transport) => createClient(PayoutService, transport).listPayouts,
  },
} as const;

async function list(resource: Resource, options: Options, env: Environment): Promise<void> {
  const { states, clientOf } = resources[resource];
  const { since, needsOperator, limit = Number.POSITIVE_INFINITY } = options;
  const request = {
    states: states.values
      .filter(({ localName }) => options.state?.includes(localName.toLowerCase()))
      .map(({ number }) => number as never),
    firstSeenAfter: since === undefined ? undefined : timestampFromMs(Date.now() - since),
    ...{ needsOperator, newestFirst: true },
  };
  let shown = 0;
  let pageToken = "";
  await onGateway(options, env, async (transport) => {
    const read = clientOf(transport);
    do {
      const page = await read({ ...request, pageToken }, { timeoutMs });
      const listed: readonly Listed[] = "payments" in page ? page.payments : page.payouts;
      for (const one of listed.slice(0, limit - shown)) {
        const state = states.value[one.state]?.localName ?? `${one.state}`;
        if (options.json) printJson(jsonOf(one, state));
        else print(lineOf(one, state));
        shown++;
      }
      pageToken = page.nextPageToken;
    } while (pageToken !== "" && shown < limit);
  });
  if (!options.json && shown === 0) note(`no ${resource}`);
}

function lineOf({ firstSeenAt, externalId, ...flags }: Listed, state: string): string {
  return [
    paint("dim", timeOf(firstSeenAt)),
    state,
    paint("bold", printable(externalId)),
    ...(flags.outcomeUnknown ? ["a call has no answer"] : []),
    ...(flags.needsOperator ? ["needs an operator"] : []),
  ].join("  ");
}

function jsonOf({ externalId, firstSeenAt, updatedAt, ...flags }: Listed, state: string) {
  return {
    external_id: externalId,
    state,
    first_seen_at: timeOf(firstSeenAt),
    updated_at: timeOf(updatedAt),
    outcome_unknown: flags.outcomeUnknown,
    needs_operator: flags.needsOperator,
  };
}

function timeOf(at: Timestamp | undefined): string {
  return at ? timestampDate(at).toISOString() : "";
}
