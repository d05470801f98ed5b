import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import { CommandError, interruption } from "../src/cli/command-error.ts";
import { codeName, onGateway } from "../src/cli/gateway-client.ts";
import {
  addGatewayOptions,
  credentialsHelp,
  type GatewayOptions,
  httpUrl,
  wholeNumber,
} from "../src/cli/gateway-options.ts";
import { note, paint, print, printable, printJson } from "../src/cli/terminal.ts";
import type { Environment } from "../src/config/environment.ts";
import { Health } from "../src/gen/grpc/health/v1/health_pb.ts";
import type { Event } from "../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../src/gen/payments/v1/event_service_pb.ts";
import { type KindName, kindNamed, kindNames } from "../src/model/kinds.ts";
import { eventJson, eventLine, stateOf, states, statusOf } from "./event-line.ts";
import { followEvents } from "./follow.ts";
import { type Forwarded, forward } from "./forward.ts";
import { passwordOrSandbox } from "./password.ts";

const help = `
Every event of the merchant account, one a line: what callbacks brought, what answers to calls said
(response), and what the gateway looked up (reconciliation). A line has the status of the operation
that the event is about, and then the state: whether the payment as a whole is paid. When the
connection breaks it is opened again, and goes on behind the last event. Needs the scope
events:read. Card tokens are left out, in --json too.

--forward-to sends on what came as a callback: a POST with X-SERVICE-SIGNATURE, as the payments
service sends it; 200 accepts it. The gateway does not keep a callback's bytes, so the body is
written anew from the event: the same values, but other white space and order, and without
members that the gateway's contract does not know. It is signed with the password of
--password-file, else of UPSTREAM_PASSWORD, else the sandbox's.

${credentialsHelp}

Exit codes: 0 ended by Ctrl-C or --limit, 1 refused, or callbacks that were not accepted,
69 no gateway there.

Examples:
  $ payments-gateway listen
  $ payments-gateway listen --kind payment --state paid refunded
  $ payments-gateway listen --after earliest --external-id order-1 --json | jq .event
  $ payments-gateway listen --forward-to http://127.0.0.1:3000/webhooks/{kind}`;

interface Options extends GatewayOptions {
  readonly after?: string;
  readonly kind?: readonly KindName[];
  readonly externalId?: readonly string[];
  readonly state?: readonly string[];
  readonly status?: readonly string[];
  readonly limit?: number;
  readonly forwardTo?: string;
  readonly forwardAttempts: number;
  readonly passwordFile?: string;
  readonly json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  addGatewayOptions(
    command
      .addOption(new Option("--kind <kind...>", "only of this kind").choices(kindNames))
      .option("--external-id <id...>", "only of these payments or payouts")
      .addOption(
        new Option("--state <state...>", "only with these states: is it paid?").choices(states),
      )
      .option("--status <status...>", "only these: success, failure, pending, init, unknown, …")
      .option("--after <cursor>", "begin behind this event; `earliest`: with the oldest kept")
      .option("--limit <n>", "end after so many events", wholeNumber)
      .option(
        "--forward-to <url>",
        "send callbacks on; {kind} becomes payments or payouts",
        httpUrl,
      )
      .option("--forward-attempts <n>", "how often one is tried", wholeNumber, 5)
      .option("--password-file <file>", "file with the password to sign with")
      .option("--json", "one JSON object a line: {event, forward}"),
  )
    .addHelpText("after", help)
    .action((options: Options) => listen(options, env));
}

async function listen(options: Options, env: Environment): Promise<void> {
  const { forwardTo, limit = Number.POSITIVE_INFINITY } = options;
  const signal = interruption();
  const forwarding = forwardTo && {
    url: forwardTo,
    password: passwordOrSandbox(options.passwordFile, env),
    attempts: options.forwardAttempts,
    signal,
  };
  const kinds = (options.kind ?? []).map((name) => kindNamed(name));
  let shown = 0;
  let last: string | undefined;
  let refused = 0;
  const show = async (transport: Transport) => {
    const { streamEvents } = createClient(EventService, transport);
    // An open stream without events would not show that no gateway is there.
    await createClient(Health, transport).check({}, { signal, timeoutMs: 10_000 });
    if (!options.json) note(paint("dim", `listening to ${options.url}`, process.stderr));
    const events = followEvents({
      open: (afterCursor, { onHeader }) =>
        streamEvents(
          { kinds, ...(afterCursor !== undefined && { afterCursor }) },
          { signal, onHeader },
        ),
      after: options.after,
      signal,
      onPause({ code, rawMessage }, pauseMs) {
        const why = `${codeName(code)}: ${printable(rawMessage)}`;
        note(`the stream broke (${why}), again in ${(pauseMs / 1_000).toFixed(1)} s`);
      },
      onGap: () =>
        note("the gateway no longer knows the last event: some may be missing before the next"),
    });
    for await (const event of events) {
      if (!isWanted(event, options)) continue;
      if (!options.json) print(eventLine(event));
      const forwarded = forwarding ? await forward(event, forwarding) : undefined;
      if (options.json)
        printJson({ event: eventJson(event), ...(forwarded && { forward: forwarded }) });
      else if (forwarded) print(forwardLine(forwarded));
      if (forwarded && !forwarded.accepted) refused += 1;
      last = event.cursor;
      shown += 1;
      if (shown >= limit) break;
    }
  };
  await onGateway(options, env, show).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  if (last !== undefined && !options.json) {
    note(paint("dim", `go on behind the last one: --after ${last}`, process.stderr));
  }
  if (refused > 0) throw new CommandError(`${refused} of the callbacks were not accepted`);
}

function isWanted(event: Event, { externalId, state, status }: Options): boolean {
  if (externalId && !externalId.includes(event.externalId)) return false;
  if (state && !state.includes(stateOf(event))) return false;
  return !status || status.some((wanted) => wanted.toLowerCase() === statusOf(event));
}

function forwardLine({ url, answer, accepted, attempts, durationMs }: Forwarded): string {
  const verdict = accepted ? paint("green", String(answer)) : paint("red", String(answer));
  const tries = attempts > 1 ? `, ${attempts} attempts` : "";
  return `  → ${url}: ${verdict} (${durationMs} ms${tries})`;
}
