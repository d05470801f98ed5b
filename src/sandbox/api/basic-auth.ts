import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../secrets/secret.ts";

/** Checks an `Authorization` header against the merchant's login and password (HTTP Basic). */
export function createBasicAuth(
  login: string,
  password: Secret,
): (header: string | undefined) => boolean {
  const expected = digest(`${login}:${password.reveal()}`);
  return (header) => {
    const encoded = /^basic +([a-z0-9+/=]+)$/i.exec(header ?? "")?.[1];
    if (encoded === undefined) return false;
    return timingSafeEqual(digest(Buffer.from(encoded, "base64").toString()), expected);
  };
}

/** Equal lengths, so that the comparison tells nothing about the lengths. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
