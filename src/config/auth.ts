import { z } from "zod";
import type { AuthOptions, KeySetSource } from "../auth/create-authentication.ts";
import { isLoopback } from "../net/loopback.ts";
import { isPlaintext } from "./accounts.ts";
import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { type Address, audience, authModes, boolean, issuer, keySetUrl, path } from "./values.ts";

/**
 * Reads how callers authenticate.
 * @throws ConfigError when callers need no credentials and a listener is open to other machines
 */
export function readAuthModes(
  read: Reader,
  sandbox: boolean,
  listeners: Readonly<Record<string, Address>>,
): AuthOptions["modes"] {
  const modes = read("AUTH_MODE", authModes, sandbox ? "none" : undefined);
  const allowUnauthenticated = read("ALLOW_UNAUTHENTICATED", boolean, "false");
  if (modes.has("none") && !allowUnauthenticated) {
    for (const [variable, { host }] of Object.entries(listeners)) {
      if (isLoopback(host)) continue;
      throw new ConfigError(
        "AUTH_MODE",
        `none is refused while ${variable} is not on loopback (${host}); give keys or jwt, or set ALLOW_UNAUTHENTICATED=true`,
      );
    }
  }
  return modes;
}

/** Reads the settings of the modes. @throws ConfigError if a mode lacks one that it needs */
export function readAuth(read: Reader, modes: AuthOptions["modes"]): AuthOptions {
  return {
    modes,
    customerClaim: read("AUTH_CUSTOMER_CLAIM", z.string(), "customer_external_id"),
    // RFC 9068, 2.2: an access token names the client that it was issued to.
    serviceClaim: read("AUTH_SERVICE_CLAIM", z.string(), "client_id"),
    ...(modes.has("keys") ? { apiKeysFile: read("API_KEYS_FILE", path) } : {}),
    ...(modes.has("jwt")
      ? {
          jwt: {
            keySet: readKeySet(read),
            issuer: read("AUTH_ISSUER", issuer),
            audience: read("AUTH_AUDIENCE", audience),
          },
        }
      : {}),
  };
}

function readKeySet(read: Reader): KeySetSource {
  const url = read.optional("AUTH_JWKS_URL", keySetUrl);
  const file = read.optional("AUTH_JWKS_FILE", path);
  if (url !== undefined && file !== undefined) {
    throw new ConfigError("AUTH_JWKS_FILE", "is given beside AUTH_JWKS_URL: give one of them");
  }
  if (file !== undefined) return { file };
  const remote = url ?? read("AUTH_JWKS_URL", keySetUrl);
  if (isPlaintext(remote)) {
    throw new ConfigError(
      "AUTH_JWKS_URL",
      `is http: off loopback (${new URL(remote).host}): whoever changes the response in transit could sign any JWT; accepted is https, or AUTH_JWKS_FILE`,
    );
  }
  return { url: remote };
}
