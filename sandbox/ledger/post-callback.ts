import type { Secret } from "../../src/secrets/secret.ts";
import { sign, signatureHeader } from "../../src/wire/signature.ts";

/**
 * Posts a callback's body as the payments service does (spec, Authentication part 4), signed with
 * the password, and returns the status of the answer. A redirect is not followed.
 * @throws what `fetch` throws
 */
export async function postCallback(
  url: string,
  body: Buffer,
  password: Secret | string,
  signal: AbortSignal,
): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", [signatureHeader]: sign(body, password) },
    body: new Uint8Array(body),
    redirect: "manual",
    signal,
  });
  await response.body?.cancel();
  return response.status;
}
