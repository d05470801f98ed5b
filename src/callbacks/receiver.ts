import { createHash } from "node:crypto";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { GatewayError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Kind, kindOfResource, kinds, type Resource } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import { percentDecoded } from "../net/address-text.ts";
import type { OnCut } from "../net/cut.ts";
import type { Body, Intake, Received, Unread } from "../net/intake.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { turnEnd } from "../net/turn-end.ts";
import { noReport, type Observations, type Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import { knownMethodOf } from "../telemetry/tracing/attributes.ts";
import { startHttpSpan } from "../telemetry/tracing/http-span.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import { signatureForm, signatureHeader, verify } from "../wire/signature.ts";
import type { WireFault } from "../wire/wire.ts";
import { parseCallback } from "./parse-callback.ts";

export interface CallbackOptions {
  /** Accounts by their name in the callback's path. */
  readonly accounts: ReadonlyMap<string, CallbackAccount>;
  /** The service's final payout statuses. Default: success and failure. */
  readonly payoutEnds?: PayoutEnds;
  readonly ledger: Ledger;
  /** Default: nothing is reported. */
  readonly report?: Report;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing;
  /** Takes in the bodies, which anybody can send: they bypass the admission of calls. */
  readonly intake: Intake;
  /** Longest that a body may take to arrive, in milliseconds. Default: 10,000. */
  readonly bodyTimeoutMs?: number;
}

/** What the receiver needs of a merchant account. */
export interface CallbackAccount {
  readonly password: Secret;
  /** Still accepted while the password is rotated. */
  readonly previousPasswords: readonly Secret[];
}

/**
 * Handles `POST /callbacks/{merchant}/payments` and `.../payouts`; responds 200 only once the
 * callback is stored. The signature is checked over the raw bytes before anything is parsed, and
 * the merchant comes from the path alone. The returned handler never rejects.
 */
export function createCallbackHandler(
  options: CallbackOptions,
): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  const { accounts, intake, ledger, report = noReport, tracing = noTracing } = options;
  const onCut: OnCut = (limit) => report("cut", { listener: "public", limit });

  return function handle(req, res) {
    const startedMs = performance.now();
    const body = intake.bodyOf(req, res, onCut);
    const requestId = requestIdOf(req.headers[requestIdHeader]?.toString());
    res.setHeader(requestIdHeader, requestId);
    const span = startHttpSpan(tracing, req);
    const { traceparent } = span;
    return span.run(async () => {
      const route = routeOf(req.url ?? "", accounts);
      const about = route && { account: route.account, resource: route.resource };
      const { retryAfterMs, ...told } = route
        ? await judge(options, route, req, body, span)
        : notFound;
      const durationMs = performance.now() - startedMs;
      const traced = traceparent ? { traceparent } : {};
      report("callback", { requestId, durationMs, ...traced, ...about, ...told });
      span.set({ "payments_gateway.callback.verdict": told.verdict });
      const status = await answer(res, told.verdict, retryAfterMs);
      // What was not read of it is discarded behind the answer.
      body.discard();
      span.set({ "http.response.status_code": status });
      if (status !== undefined && status >= 500) span.fail(`${status}`);
      // Look up the cause only after the service has its response.
      if (traceparent && route && told.externalId !== undefined) {
        span.link(await ledger.causeOf(route.account, route.kind, told.externalId));
      }
      span.end();
    });
  };
}

/** What becomes of a callback: its verdict, and what is reported with it. */
interface Judged extends Omit<Observations["callback"], "requestId" | "durationMs"> {
  readonly verdict: keyof typeof answers;
  /** When the service may send it again, if the store says that. */
  readonly retryAfterMs?: number | undefined;
}

const notFound: Judged = { verdict: "not_found" };

/** Reads a callback, verifies it, and stores it. */
async function judge(
  options: CallbackOptions,
  route: Route,
  req: IncomingMessage,
  body: Body,
  span: Span,
): Promise<Judged> {
  const { account, resource } = route;
  span.rename(`${knownMethodOf(req.method ?? "") ?? "HTTP"} /callbacks/{merchant}/${resource}`);
  span.set({
    "http.route": `/callbacks/{merchant}/${resource}`,
    "url.path": `/callbacks/${encodeURIComponent(account)}/${resource}`,
    "payments_gateway.account": account,
  });
  if (req.method !== "POST") return { verdict: "method_not_allowed" };
  // Node joins the values of several such headers by commas, which no signature has.
  const signature = `${req.headers[signatureHeader]}`;
  // A body is not worth reading for what cannot be its signature.
  if (!signatureForm.test(signature)) return { verdict: "bad_signature" };
  const arrived = await received(req, body, options.bodyTimeoutMs ?? 10_000);
  if (typeof arrived === "string") return { verdict: unread[arrived] };
  // To verify a large body takes milliseconds.
  if (arrived.length > atOnceBytes) await options.intake.turn(req.socket);
  if (!verify(arrived, signature, route.passwords)) return { verdict: "bad_signature" };
  try {
    return await keep(options, route, arrived);
  } catch (error) {
    const retryAfterMs = error instanceof GatewayError ? error.details.retryAfterMs : undefined;
    return { verdict: "unavailable", error, retryAfterMs };
  }
}

const unread: Readonly<Record<Unread, Judged["verdict"]>> = {
  ...{ "too-large": "too_large", slow: "slow", gone: "aborted", overloaded: "overloaded" },
};

/** The answers to each verdict; none to a client that has left. */
const answers = {
  stored: [200, ""],
  duplicate: [200, ""],
  dead_letter: [200, ""],
  not_found: [404, "no such callback address"],
  method_not_allowed: [405, "callbacks have to be sent by POST", { allow: "POST" }],
  bad_signature: [401, "exactly one signature is required, and the right one"],
  slow: [408, "the body did not arrive in time", { connection: "close" }],
  overloaded: [503, "too many callbacks at once"],
  too_large: [413, "the body is over 1 MiB"],
  unavailable: [503, "the callback could not be stored"],
  aborted: undefined,
} as const satisfies Record<string, readonly [number, string, OutgoingHttpHeaders?] | undefined>;

/** @returns its status */
async function answer(
  res: ServerResponse,
  verdict: Judged["verdict"],
  retryAfterMs = 5_000,
): Promise<number | undefined> {
  const given: readonly [number?, string?, OutgoingHttpHeaders?] = answers[verdict] ?? [];
  const [status, text = "", headers] = given;
  if (status === undefined) return undefined;
  await turnEnd();
  res.writeHead(status, {
    ...(text && { "content-type": "text/plain; charset=utf-8" }),
    "content-length": `${Buffer.byteLength(text)}`,
    ...headers,
    ...(status === 503 && { "retry-after": `${Math.ceil(retryAfterMs / 1_000)}` }),
  });
  res.end(text);
  return status;
}

/** Larger bodies are verified in a turn among the calls. */
const atOnceBytes = 16 * 1024;

async function received(req: IncomingMessage, body: Body, timeoutMs: number): Promise<Received> {
  const { messageBytes: maxBytes } = intakeLimits;
  if (Number(req.headers["content-length"]) > maxBytes) return "too-large";
  // By then Node's parser has handed over what came with the headers.
  await undefined;
  return body.atHand(maxBytes) ?? (await body.receive({ maxBytes, timeoutMs }));
}

interface Route {
  readonly account: string;
  readonly kind: Kind;
  readonly resource: Resource;
  readonly passwords: readonly Secret[];
}

/** Undefined for a path that names no account or no resource. */
function routeOf(url: string, accounts: CallbackOptions["accounts"]): Route | undefined {
  const match = /^\/callbacks\/([^/?#]+)\/([a-z]+)(?:\?.*)?$/.exec(url);
  const kind = kindOfResource(match?.[2] ?? "");
  const account = percentDecoded(match?.[1] ?? "");
  if (kind === undefined || account === undefined) return undefined;
  const of = accounts.get(account);
  const passwords = of && [of.password, ...of.previousPasswords];
  return passwords && { account, kind, resource: kinds[kind].resource, passwords };
}

/** Stores a verified body, as an event or as a dead letter. @throws when it could not be stored. */
async function keep(
  { ledger, report = noReport, payoutEnds }: CallbackOptions,
  { account, kind, resource }: Route,
  body: Uint8Array,
): Promise<Judged> {
  const endpoint = `callback ${resource}`;
  const onFault = (fault: WireFault) => report("fieldFault", { account, endpoint, ...fault });
  const { entry, reason = "", error } = parseCallback(kind, body, { onFault, payoutEnds });
  if (entry) {
    const { outcome } = await ledger.append(account, entry);
    return { verdict: outcome, externalId: entry.externalId };
  }
  await ledger.letters.addDeadLetter(account, {
    id: createHash("sha256").update(`${kind}:`).update(body).digest("hex"),
    ...{ kind, body: Buffer.from(body).toString("base64"), reason, receivedAtMs: Date.now() },
  });
  return { verdict: "dead_letter", reason, ...(error !== undefined && { error }) };
}
