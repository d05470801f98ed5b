import { type Command, Option } from "commander";
import type { History, HistoryEvent, OpenCall } from "../admin/console-api.ts";
import type { Environment } from "../config/environment.ts";
import { type KindName, kindNames } from "../model/kinds.ts";
import {
  type AdminOptions,
  addAdminOptions,
  adminHelp,
  createAskAdmin,
  notAnAdminListener,
} from "./admin-client.ts";
import { CommandError } from "./command-error.ts";
import { note, paint, print, printable, printJson } from "./terminal.ts";

const help = `
Tells what the gateway knows of a payment or payout: each kept event, the oldest first, with the
state after it, then the calls whose outcome is not known yet. The same as the console shows; the
newest 100 events.

${adminHelp}

Exit codes: 0 told, 1 nothing is known of it, 69 no gateway there.

Examples:
  $ payments-gateway story order-1
  $ payments-gateway story order-1 --kind payout --account shop
  $ payments-gateway story order-1 --json | jq -r .state`;

interface Options extends AdminOptions {
  readonly kind?: KindName;
  readonly json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  addAdminOptions(
    command
      .argument("<external_id>", "its external_id")
      .addOption(
        new Option("--kind <kind>", "only a payment, or only a payout").choices([...kindNames]),
      )
      .option("--json", "one JSON object a line"),
  )
    .addHelpText("after", help)
    .action((externalId: string, options: Options) => tell(externalId, options, env));
}

async function tell(externalId: string, options: Options, env: Environment): Promise<void> {
  const ask = createAskAdmin(options, env);
  let known = false;
  for (const kind of options.kind ? [options.kind] : kindNames) {
    const query = {
      kind,
      external_id: externalId,
      ...(options.account && { account: options.account }),
    };
    const history = await ask<History>("GET", `/api/history?${new URLSearchParams(query)}`);
    if (history === undefined) throw notAnAdminListener(options.adminUrl);
    const { events, calls } = history;
    if (events.length + calls.length === 0) continue;
    known = true;
    if (!options.json) print(paint("bold", `${kind} ${printable(externalId)}`));
    for (const event of events.toReversed()) {
      if (options.json) printJson({ kind, ...event });
      else print(eventLine(event));
    }
    for (const call of calls) {
      if (options.json) printJson({ kind, openCall: call });
      else print(callLine(call));
    }
  }
  if (known) return;
  if (!options.json) note(`nothing is known of ${printable(externalId)}`);
  throw new CommandError("");
}

function eventLine(event: HistoryEvent): string {
  const { operation, status, statusCode, amount, currency, callOutcome, subjectId } = event;
  const told = callOutcome
    ? `a call is ${callOutcome.toLowerCase().replaceAll("_", " ")}`
    : [operation, status, statusCode && `(${statusCode})`].filter(Boolean).join(" ");
  return [
    paint("dim", timeOf(event.receivedAtMs)),
    event.source.toLowerCase().padEnd("reconciliation".length),
    printable(told),
    ...(amount ? [printable(`${amount} ${currency ?? ""}`.trim())] : []),
    ...(subjectId ? [paint("dim", printable(subjectId))] : []),
    ...(event.state ? [`→ ${event.state}`] : []),
  ].join("  ");
}

function callLine({ method, state, startedAtMs, nextLookMs, needsOperator }: OpenCall): string {
  const next = needsOperator
    ? "an operator has to find out what became of it"
    : nextLookMs === undefined
      ? "no look-up follows"
      : `looked up next at ${timeOf(nextLookMs)}`;
  return [paint("dim", timeOf(startedAtMs)), `${method} is ${state}: ${next}`].join("  ");
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
