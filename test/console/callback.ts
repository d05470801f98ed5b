import { createHash } from "node:crypto";
import { sign } from "../../src/wire/signature.ts";

export interface CallbackAbout {
  readonly externalId: string;
  readonly status?: string;
  readonly account?: string;
  readonly password?: string;
  /** Members that are added to the body, or replace members of it. */
  readonly body?: object;
}

/** Sends a signed payment callback, as the payments service would. @returns the HTTP status */
export async function sendCallback(
  publicUrl: string,
  { externalId, status = "success", account = "default", password, body }: CallbackAbout,
): Promise<number> {
  const hex = createHash("sha256").update(externalId).digest("hex");
  const text = JSON.stringify({
    external_id: externalId,
    operation: "payment",
    details: { payment_id: hex.slice(0, 32), status, amount: 12.5, currency: "UAH" },
    ...body,
  });
  const response = await fetch(`${publicUrl}/callbacks/${account}/payments`, {
    method: "POST",
    headers: { "x-service-signature": sign(Buffer.from(text), password ?? "sandbox-password") },
    body: text,
  });
  await response.text();
  return response.status;
}
