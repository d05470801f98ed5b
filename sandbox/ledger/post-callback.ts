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
  const target = new URL(url);
  const { username, password: secret } = target;
  const basic = Buffer.from([username, secret].map(decodeURIComponent).join(":"));
  // `fetch` takes no URL with a user name.
  Object.assign(target, { username: "", password: "" });
  const response = await fetch(target, {
    method: "POST",
    headers: {
      ...{ "content-type": "application/json", [signatureHeader]: sign(body, password) },
      ...(username && { authorization: `Basic ${basic.toString("base64")}` }),
    },
    body: new Uint8Array(body),
    redirect: "manual",
    signal,
  });
  await response.body?.cancel();
  return response.status;
}
