import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

/** What the service does to a call whose external_id or URL contains the name; else `success`. */
export const behaviours = [
  "success",
  "declined",
  "error",
  "spaced",
  "html",
  "limited",
  "outage",
  "silent",
  "lost",
  "cut",
  "nonsense",
  "unauthorized",
] as const;

/** Secrets in the answers that only callers may receive. */
export interface AnsweredSecrets {
  readonly token: string;
  readonly number: string;
  readonly iban: string;
}

/**
 * A payments service whose failures quote the whole request, headers included. Its answers contain
 * `token` as the card's token, `number` as its full number and `iban` as the recipient's IBAN.
 */
export function echoingUpstream(secrets: AnsweredSecrets): Server {
  return createServer((request, response) => {
    text(request).then(
      (body) => answer(request, body, response, secrets),
      () => response.destroy(),
    );
  });
}

function answer(
  request: IncomingMessage,
  body: string,
  response: ServerResponse,
  { token, number, iban }: AnsweredSecrets,
): void {
  const externalId = /"external_id":"([^"]*)"/.exec(body)?.[1] ?? "";
  const asked = `${externalId} ${request.url}`;
  const behaviour = behaviours.find((name) => asked.includes(name)) ?? "success";
  const quoted = `${request.url} ${JSON.stringify(request.headers)} ${body}`;
  const send = (status: number, json: unknown, headers: Record<string, string> = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof json === "string" ? json : JSON.stringify(json));
  };
  const error = (message: string, code = "invalid_card_data") => ({
    code,
    message,
    param: message,
    type: "invalid_request_error",
    error_id: message,
    payment_id: message,
  });
  // Free text of a success quotes card numbers only: the gateway masks no other secrets there.
  const numbers = [...new Set(body.match(/\b\d{16}\b/g))];
  const freeText = `approved for ${numbers.map((digits) => `${digits}, ${spaced(digits)}`)}`;
  const payment = {
    external_id: externalId,
    operation: "payment",
    is_success: true,
    transaction_id: `t-${externalId}`,
    status: "success",
    description: freeText,
    status_code_description: freeText,
    details: {
      payment_id: `p-${externalId}`,
      status: "success",
      description: freeText,
      status_description: freeText,
      fiscalization: { status_description: freeText },
      recipient_iban: iban,
    },
    name: freeText,
    payment_method: { type: "cc_token", cc_token: { token, mask: "471610******6531" } },
    card: { full_number: number, token, mask: "471610******6531" },
    option_id: "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01",
    message: freeText,
  };
  switch (behaviour) {
    case "success":
      send(200, payment);
      return;
    case "declined":
      send(200, {
        ...payment,
        is_success: false,
        details: { ...payment.details, status: "failure", status_code: "insufficient_funds" },
      });
      return;
    case "error":
      send(400, error(`bad request: ${quoted}`));
      return;
    case "spaced":
      // Card numbers in groups of four digits, with every separator that may stand between them.
      send(
        422,
        error(
          ["$1 $2 $3 $4", "$1-$2-$3-$4", "$1.$2.$3.$4", "$1\u00a0$2\u00a0$3\u00a0$4"]
            .map((form) => quoted.replace(/\b(\d{4})(\d{4})(\d{4})(\d{4})\b/g, form))
            .join(" "),
        ),
      );
      return;
    case "html":
      response.writeHead(500, { "content-type": "text/html", "x-debug": encodeURI(quoted) });
      response.end(`<html><pre>${quoted}</pre></html>`);
      return;
    case "limited":
      send(429, error(quoted, "too_many_requests"), { "x-ratelimit-limit": number });
      return;
    case "outage":
      send(503, error(quoted, "internal_error"));
      return;
    case "silent":
      return;
    case "lost":
      response.destroy();
      return;
    case "cut":
      response.writeHead(200, { "content-type": "application/json", "content-length": 99_999 });
      response.write(`{"external_id": "${quoted.replaceAll('"', "'")}`, () => response.destroy());
      return;
    case "nonsense":
      // Wrong types and unknown field names.
      send(200, {
        external_id: externalId,
        details: { payment_id: `p-${externalId}`, status: quoted },
        created_date: quoted,
        is_success: quoted,
        payment_method: { type: quoted, cc_token: quoted },
        card: number,
        [quoted]: quoted,
      });
      return;
    case "unauthorized":
      send(401, error(quoted, "authorization_error"));
      return;
  }
}

function spaced(digits: string): string {
  return digits.replace(/(\d{4})(?=\d)/g, "$1 ");
}
