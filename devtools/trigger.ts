import { randomBytes, randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { postCallback } from "@payments-gateway/sandbox/post-callback";
import { type Command, Option } from "commander";
import { CommandError, exitCodes, wrongUsage } from "../src/cli/command-error.ts";
import { onGateway } from "../src/cli/gateway-client.ts";
import {
  addGatewayOptions,
  credentialsHelp,
  type GatewayOptions,
  httpUrl,
  urlOption,
} from "../src/cli/gateway-options.ts";
import { fetchFault, unreachable } from "../src/cli/reach.ts";
import { paint, print, printable, printJson } from "../src/cli/terminal.ts";
import { readSandboxConfig } from "../src/config/config.ts";
import type { Environment } from "../src/config/environment.ts";
import type { Resource } from "../src/model/kinds.ts";
import { isLoopback } from "../src/net/loopback.ts";
import type { Secret } from "../src/secrets/secret.ts";
import { passwordOrSandbox } from "./password.ts";
import { findTriggered, type Triggered, triggeredEvents } from "./trigger-events.ts";
import { type Happened, isSandboxBehind, sandboxRun } from "./trigger-sandbox.ts";

const help = `
--via sandbox (the default where there is such a way) makes real calls through the gateway, with the
sandbox's magic cards. It first looks through the gateway for the sandbox's demo customer, and sends
nothing when the upstream is another: that needs the scope wallet:read beside payments:write or
payouts:write, and one request of the budget.
--via callback posts a made-up body to --callback-url, signed with the password of --password-file,
else of UPSTREAM_PASSWORD, else the sandbox's. {kind} in the URL becomes payments or payouts.
Both keep to addresses of this machine, unless --force is given.

${credentialsHelp}

Exit codes: 0 it happened, 1 it came out otherwise, 69 no gateway there.

Examples:
  $ payments-gateway trigger --list
  $ payments-gateway trigger payment.success --external-id order-1 --amount 25
  $ payments-gateway trigger payment.pending        # prints the address of the 3DS page
  $ payments-gateway trigger refund --via callback --external-id order-1 --payment-id pay-1
  $ payments-gateway trigger payout.failure --via callback \\
      --callback-url http://127.0.0.1:3000/webhooks/{kind}`;

interface Options extends GatewayOptions {
  readonly list?: boolean;
  readonly via?: "sandbox" | "callback";
  readonly externalId?: string;
  readonly paymentId?: string;
  readonly amount: string;
  readonly currency: string;
  readonly callbackUrl?: string;
  readonly sandboxUrl: string;
  readonly passwordFile?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  addGatewayOptions(
    command
      .argument("[event]", "what is to happen; see --list")
      .option("--list", "show all events and the ways to make them")
      .addOption(new Option("--via <way>", "how").choices(["sandbox", "callback"]))
      .option("--external-id <id>", "of the payment or payout (default: a new one)")
      .option("--payment-id <id>", "of a payment that was made, for refund")
      .option("--amount <decimal>", "how much", decimal, "10.10")
      .option("--currency <code>", "currency", "UAH")
      .option("--callback-url <url>", "where callbacks go (default: the local gateway)", httpUrl)
      .addOption(
        urlOption(
          "--sandbox-url <url>",
          "the sandbox, for refund and cancel",
          "PAYMENTS_GATEWAY_SANDBOX_URL",
          "http://127.0.0.1:4010",
        ),
      )
      .option("--password-file <file>", "file with the password to sign with")
      .option("--force", "also elsewhere than on this machine and at the sandbox")
      .option("--json", "print {event, via, external_id, answer, …}"),
  )
    .addHelpText("after", help)
    .action((name: string | undefined, options: Options) => trigger(name, options, env));
}

async function trigger(name: string | undefined, options: Options, env: Environment) {
  if (options.list) return list(options.json === true);
  if (name === undefined)
    throw wrongUsage("name an event: `payments-gateway trigger --list` shows all");
  const event = findTriggered(name);
  if (!event) {
    const names = triggeredEvents.map((known) => known.name).join(", ");
    throw wrongUsage(`there is no event ${JSON.stringify(name)}: ${names}`);
  }
  const { via = event.sandbox ? "sandbox" : "callback" } = options;
  const externalId = options.externalId ?? `trigger-${randomBytes(4).toString("hex")}`;
  const happened =
    via === "sandbox"
      ? await bySandbox(event, externalId, options, env)
      : await byCallback(event, externalId, options, env);
  const { answer, paymentId, transactionId, page } = happened;
  if (options.json) {
    return printJson({
      event: event.name,
      via,
      external_id: externalId,
      payment_id: paymentId,
      transaction_id: transactionId,
      page,
      answer,
    });
  }
  print(`${paint("green", event.name)} ${printable(externalId)}: ${answer}`);
  if (paymentId !== undefined) print(`  payment_id ${printable(paymentId)}`);
  if (transactionId !== undefined) print(`  transaction_id ${printable(transactionId)}`);
  if (page !== undefined) print(`  the customer's page: ${printable(page)}`);
}

function list(json: boolean): void {
  for (const { name, summary, sandbox, callback } of triggeredEvents) {
    const via = [...(sandbox ? ["sandbox"] : []), ...(callback ? ["callback"] : [])];
    if (json) printJson({ event: name, via, summary });
    else print(`${paint("bold", name.padEnd(24))} ${via.join(", ").padEnd(18)} ${summary}`);
  }
}

async function bySandbox(
  event: Triggered,
  externalId: string,
  options: Options,
  env: Environment,
): Promise<Happened> {
  const { sandbox: runInSandbox } = event;
  if (!runInSandbox) throw wrongUsage(`${event.name} works only with --via callback`);
  const { amount, currency, paymentId, url, force } = options;
  if (!force) {
    onThisMachine(url, "--url");
    onThisMachine(options.sandboxUrl, "--sandbox-url");
  }
  const { login, password } = readSandboxConfig(env);
  const control = { url: options.sandboxUrl, login, password: password.reveal() };
  return onGateway(options, env, async (transport) => {
    if (!force) await insistOnSandbox(transport, url);
    return runInSandbox(
      sandboxRun({ transport, externalId, amount, currency, paymentId, control }),
    );
  });
}

async function insistOnSandbox(
  transport: Parameters<typeof isSandboxBehind>[0],
  url: string,
): Promise<void> {
  try {
    if (await isSandboxBehind(transport)) return;
  } catch (error) {
    if (!(error instanceof ConnectError && error.code === Code.NotFound)) throw error;
  }
  throw new CommandError(
    `the upstream of the gateway at ${url} is not the sandbox: nothing was sent. Use --via callback, or --force if you know better`,
  );
}

async function byCallback(
  event: Triggered,
  externalId: string,
  options: Options,
  env: Environment,
): Promise<Happened> {
  const { callback } = event;
  if (!callback) throw wrongUsage(`${event.name} works only with --via sandbox`);
  const { account = "default", amount, currency, force } = options;
  const template =
    options.callbackUrl ?? `http://127.0.0.1:4000/callbacks/${encodeURIComponent(account)}/{kind}`;
  const url = template.replaceAll("{kind}", callback.kind);
  if (!force) onThisMachine(url, "--callback-url");
  const subjectId = options.paymentId ?? randomUUID();
  const at = new Date();
  const values = { externalId, subjectId, operationId: randomUUID(), amount, currency, at };
  const password = passwordOrSandbox(options.passwordFile, env);
  const expected = callback.forged ? 401 : 200;
  const bodies = callback.bodies(values).map((body) => Buffer.from(JSON.stringify(body)));
  for (const body of bodies) {
    const status = await post(url, body, callback.forged ? randomUUID() : password);
    if (status !== expected) throw refused(url, status, expected);
  }
  const answer =
    bodies.length === 1
      ? `the callback was answered ${expected}`
      : `${bodies.length} callbacks were answered ${expected}`;
  const reported = !callback.forged && bodies.some((body) => body.includes(subjectId));
  if (!reported) return { answer };
  return { answer, [subjectNames[callback.kind]]: subjectId };
}

const subjectNames: Readonly<Record<Resource, string>> = {
  payments: "paymentId",
  payouts: "transactionId",
};

function post(url: string, body: Buffer, password: Secret | string): Promise<number> {
  const signal = AbortSignal.timeout(10_000);
  return postCallback(url, body, password, signal).catch((error: unknown) => {
    const why = fetchFault(error);
    const message = unreachable("the receiver of callbacks", url, why, "--callback-url");
    throw new CommandError(message, exitCodes.unavailable);
  });
}

function refused(url: string, status: number, expected: number): CommandError {
  const advice: Readonly<Record<number, string>> = {
    401: ": the password is not that of the account (--password-file, UPSTREAM_PASSWORD)",
    404: ": no account of that name, or no receiver of callbacks there",
    503: ": it could not store the callback; its log says why",
  };
  return new CommandError(`${url} answered ${status}, not ${expected}${advice[status] ?? ""}`);
}

function onThisMachine(url: string, option: string): void {
  if (isLoopback(new URL(url).hostname)) return;
  throw wrongUsage(`${option} ${url} is not on this machine: give --force to use it all the same`);
}

function decimal(text: string): string {
  if (/^\d{1,15}(\.\d{1,6})?$/.test(text)) return text;
  throw wrongUsage(`--amount ${JSON.stringify(text)} is not a decimal such as 10.10`);
}
