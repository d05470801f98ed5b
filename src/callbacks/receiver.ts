import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { GatewayError } from "../errors.ts";
import { causeOf } from "../ledger/cause-of.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Appended } from "../ledger/log.ts";
import { type Kind, kindOfResource, kinds, type Resource } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { OnCut } from "../net/cut.ts";
import type { Body, Intake, Received } from "../net/intake.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { turnEnd } from "../net/turn-end.ts";
import { noReport, type Observations, type Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import { knownMethodOf } from "../telemetry/tracing/attributes.ts";
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

/** Largest callback body, in bytes. */
export const maxBodyBytes = 1024 * 1024;

/**
 * Handles `POST /callbacks/{merchant}/payments` and `.../payouts`; responds 200 only once the
 * callback is stored. The signature is checked over the raw bytes before anything is parsed, and
 * the merchant comes from the path alone. The returned handler never rejects.
 */
export function createCallbackHandler(
  options: CallbackOptions,
): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  const { accounts, report = noReport, bodyTimeoutMs = 10_000, tracing = noTracing } = options;
  const { intake } = options;
  const onCut: OnCut = (limit) => report("cut", { listener: "public", limit });

  return function handle(req, res) {
    const startedMs = performance.now();
    const body = intake.bodyOf(req, res, onCut);
    const requestId = requestIdOf(req.headers[requestIdHeader]?.toString());
    res.setHeader(requestIdHeader, requestId);
    const span = startSpan(tracing, req);
    const reportVerdict = (details: VerdictDetails) => {
      const durationMs = performance.now() - startedMs;
      const { traceparent } = span;
      const trace = traceparent === undefined ? {} : { traceparent };
      report("callback", { requestId, durationMs, ...trace, ...details });
      span.set({ "payments_gateway.callback.verdict": details.verdict });
    };
    return span.run(async () => {
      const stored = await receive(req, res, body, span, reportVerdict);
      body.discard();
      const status = res.headersSent ? res.statusCode : undefined;
      span.set({ "http.response.status_code": status });
      if (status !== undefined && status >= 500) span.fail(`${status}`);
      // Look up the cause only after the service has its response.
      if (span.traceparent && stored) span.link(await causeOf(options.ledger, ...stored));
      span.end();
    });
  };

  /**
   * Responds to a request; the rest of a body that was not read is discarded behind the answer.
   * @returns what the callback is about, if that is known
   */
  async function receive(
    req: IncomingMessage,
    res: ServerResponse,
    body: Body,
    span: Span,
    report: (details: VerdictDetails) => void,
  ): Promise<About | undefined> {
    const route = routeOf(req.url ?? "");
    const account = route && accounts.get(route.account);
    if (!account) {
      report({ verdict: "not_found" });
      return answer(res, 404, "no such callback address");
    }
    const method = knownMethodOf(req.method ?? "") ?? "HTTP";
    span.rename(`${method} /callbacks/{merchant}/${route.resource}`);
    span.set({
      "http.route": `/callbacks/{merchant}/${route.resource}`,
      "url.path": `/callbacks/${encodeURIComponent(route.account)}/${route.resource}`,
      "payments_gateway.account": route.account,
    });
    const reportVerdict = (details: VerdictDetails) =>
      report({ account: route.account, resource: route.resource, ...details });
    const refuse = (verdict: keyof typeof refusals, text?: string) => {
      reportVerdict({ verdict });
      const [status, usual, headers] = refusals[verdict];
      return answer(res, status, text ?? usual, headers);
    };
    if (req.method !== "POST") return refuse("method_not_allowed");
    const signature = onlySignature(req);
    if (signature === undefined) {
      return refuse("bad_signature", "exactly one signature header is required");
    }
    // A body is not worth reading for what cannot be its signature.
    if (!signatureForm.test(signature)) return refuse("bad_signature");
    const arrived = await received(req, body, bodyTimeoutMs);
    if (arrived === "gone") {
      reportVerdict({ verdict: "aborted" });
      return undefined;
    }
    if (arrived === "too-large") return refuse("too_large");
    if (arrived === "slow" || arrived === "overloaded") return refuse(arrived);
    // To verify a large body takes milliseconds.
    if (arrived.length > atOnceBytes) await intake.turn(req.socket);
    if (!verify(arrived, signature, [account.password, ...account.previousPasswords])) {
      return refuse("bad_signature");
    }

    let kept: VerdictDetails;
    try {
      kept = await keep(options, route, arrived);
      reportVerdict(kept);
    } catch (error) {
      reportVerdict({ verdict: "unavailable", error });
      const retryAfterMs = error instanceof GatewayError ? error.details.retryAfterMs : undefined;
      const seconds = Math.ceil((retryAfterMs ?? defaultRetryAfterMs) / 1_000);
      return answer(res, 503, "the event store is out of reach", { "retry-after": `${seconds}` });
    }
    await answer(res, 200, "");
    const { externalId } = kept;
    return externalId === undefined ? undefined : [route.account, route.kind, externalId];
  }
}

const defaultRetryAfterMs = 5_000;

/** The answers to what is not stored. */
const refusals = {
  method_not_allowed: [405, "callbacks have to be sent by POST", { allow: "POST" }],
  bad_signature: [401, "the signature is wrong", {}],
  slow: [408, "the body did not arrive in time", { connection: "close" }],
  overloaded: [
    503,
    "too many callbacks at once",
    { "retry-after": `${defaultRetryAfterMs / 1_000}` },
  ],
  too_large: [413, "the body is over 1 MiB", {}],
} as const satisfies Record<string, readonly [number, string, Record<string, string>]>;

/** Larger bodies are verified in a turn among the calls. */
const atOnceBytes = 16 * 1024;

async function received(req: IncomingMessage, body: Body, timeoutMs: number): Promise<Received> {
  if (Number(req.headers["content-length"]) > maxBodyBytes) return "too-large";
  return body.atHand(maxBodyBytes) ?? (await body.receive({ maxBytes: maxBodyBytes, timeoutMs }));
}

type About = [account: string, kind: Kind, externalId: string];

function startSpan(tracing: Tracing, { headers, httpVersion, method = "" }: IncomingMessage): Span {
  const known = knownMethodOf(method);
  return tracing.start(known ?? "HTTP", {
    kind: "server",
    parent: (name) => headers[name]?.toString(),
    attributes: {
      "http.request.method": known ?? "_OTHER",
      "url.scheme": "http",
      "network.protocol.name": "http",
      "network.protocol.version": httpVersion,
    },
  });
}

interface VerdictDetails
  extends Omit<Observations["callback"], "requestId" | "durationMs" | "traceparent"> {
  readonly verdict:
    | Appended["outcome"]
    | ("dead_letter" | "not_found" | "aborted" | "unavailable")
    | keyof typeof refusals;
}

interface Route {
  readonly account: string;
  readonly kind: Kind;
  readonly resource: Resource;
}

function routeOf(url: string): Route | undefined {
  const match = /^\/callbacks\/([^/?#]+)\/([a-z]+)(?:\?.*)?$/.exec(url);
  const kind = kindOfResource(match?.[2] ?? "");
  if (!match || kind === undefined) return undefined;
  try {
    return { account: decodeURIComponent(match[1] ?? ""), kind, resource: kinds[kind].resource };
  } catch {
    return undefined; // Malformed percent-encoding.
  }
}

function onlySignature({ rawHeaders }: IncomingMessage): string | undefined {
  let found: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length !== signatureHeader.length || name.toLowerCase() !== signatureHeader) continue;
    if (found !== undefined) return undefined;
    found = rawHeaders[at + 1];
  }
  return found;
}

/** Stores a verified body, as an event or as a dead letter. @throws when it could not be stored. */
async function keep(
  { ledger, report = noReport, payoutEnds }: CallbackOptions,
  { account, kind, resource }: Route,
  body: Uint8Array,
): Promise<VerdictDetails> {
  const onFault = (fault: WireFault) => report("fieldFault", { account, resource, ...fault });
  const parsed = parseCallback(kind, body, { onFault, payoutEnds });
  if (!parsed.entry) {
    const { reason, error } = parsed;
    await ledger.letters.addDeadLetter(account, {
      id: createHash("sha256").update(`${kind}:`).update(body).digest("hex"),
      kind,
      body: Buffer.from(body).toString("base64"),
      reason,
      receivedAtMs: Date.now(),
    });
    return { verdict: "dead_letter", reason, ...(error !== undefined && { error }) };
  }
  const { externalId } = parsed.entry;
  const { outcome } = await ledger.append(account, parsed.entry);
  return { verdict: outcome, externalId };
}

async function answer(
  res: ServerResponse,
  status: number,
  text: string,
  headers: Record<string, string> = {},
): Promise<undefined> {
  await turnEnd();
  const type = text ? { "content-type": "text/plain; charset=utf-8" } : {};
  const length = { "content-length": `${Buffer.byteLength(text)}` };
  res.writeHead(status, { ...type, ...length, ...headers }).end(text);
}
