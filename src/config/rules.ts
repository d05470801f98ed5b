import { isLoopback } from "../net/loopback.ts";
import { parseRedisUrl } from "../redis/url.ts";
import { Secret } from "../secrets/secret.ts";
import type { Rule } from "./environment.ts";
import { inSandbox, type Values } from "./variables.ts";

/** What must be right of several variables together. */
export const rules: readonly Rule[] = [
  ...(["PUBLIC_ADDR", "RPC_ADDR"] as const).map(
    (listener): Rule =>
      (values) => {
        const { host } = values[listener];
        if (!values.AUTH_MODE.has("none") || values.ALLOW_UNAUTHENTICATED || isLoopback(host))
          return;
        return `AUTH_MODE: none is refused while ${listener} is not on loopback (${host}); give keys or jwt, or set ALLOW_UNAUTHENTICATED=true`;
      },
  ),

  ({ AUTH_MODE: modes, ADMIN_KEY: key }) => {
    if (key === undefined || modes.has("none")) return;
    return "ADMIN_KEY: is for AUTH_MODE=none alone: give an operator a key or a JWT with the scope admin";
  },

  (values) => {
    const { AUTH_MODE: modes, AUTH_JWKS_URL: url, AUTH_JWKS_FILE: file } = values;
    if (url !== undefined && file !== undefined) {
      return "AUTH_JWKS_FILE: is given beside AUTH_JWKS_URL: give one of them";
    }
    if (modes.has("jwt") && url === undefined && file === undefined) {
      return "AUTH_JWKS_URL: is missing, accepted is an http or https URL of a JSON Web Key Set (or AUTH_JWKS_FILE)";
    }
    if (url === undefined || !isPlaintext(url)) return;
    return `AUTH_JWKS_URL: is http: off loopback (${new URL(url).host}): whoever changes the response in transit could sign any JWT; accepted is https, or AUTH_JWKS_FILE`;
  },

  (values) => {
    const { REDIS_TLS_CERT_FILE: cert, REDIS_TLS_KEY_FILE: key } = values;
    if ((cert ?? key ?? values.REDIS_TLS_CA_FILE) === undefined) return;
    if (!parseRedisUrl(values.REDIS_URL ?? "")?.isTls) {
      return "REDIS_URL: is not rediss:// or rediss+sentinel:// though there are files for TLS (REDIS_TLS_CA_FILE, REDIS_TLS_CERT_FILE, REDIS_TLS_KEY_FILE), which would not be used";
    }
    if ((cert === undefined) === (key === undefined)) return;
    return `${cert ? "REDIS_TLS_KEY_FILE" : "REDIS_TLS_CERT_FILE"}: is missing: a certificate needs both`;
  },

  ({ UPSTREAM_URL: url, MERCHANTS_FILE: merchants }) => {
    if (merchants === undefined || url !== undefined) return;
    const lost = Object.entries(merchants.content).find(([, { url }]) => url === undefined)?.[0];
    if (lost === undefined) return;
    return `MERCHANTS_FILE: ${merchants.path}: ${lost}: has no url, and UPSTREAM_URL is not set`;
  },

  ({ MERCHANTS_FILE: merchants }) => {
    const owners = new Map<string, string>();
    for (const [name, account] of Object.entries(merchants?.content ?? {})) {
      for (const password of [account.password, ...account.previous_passwords]) {
        const owner = owners.get(password) ?? name;
        owners.set(password, name);
        if (owner === name) continue;
        return `MERCHANTS_FILE: ${merchants?.path}: ${owner} and ${name} share a password (previous ones count), so each would accept callbacks signed for the other; accepted is a different password for each account`;
      }
    }
    return;
  },

  (values) => {
    if (values.ALLOW_PLAINTEXT_UPSTREAM) return;
    const exposed = upstreamsOf(values).find(({ url }) => isPlaintext(url));
    if (exposed === undefined) return;
    const variable = values.MERCHANTS_FILE ? "MERCHANTS_FILE" : "UPSTREAM_URL";
    return `${variable}: the upstream of ${exposed.name} is http: off loopback (${new URL(exposed.url).host}): cards and credentials would be sent unencrypted; accepted is https, or ALLOW_PLAINTEXT_UPSTREAM=true`;
  },

  (values) => {
    const remote = upstreamsOf(values).some(({ url }) => !isLoopback(new URL(url).hostname));
    if (!remote || values.PUBLIC_URL !== undefined) return;
    return "PUBLIC_URL: is missing: the upstream sends its callbacks there; accepted is an http or https URL that reaches the public listener";
  },

  // 200 to a callback means that it is stored.
  (values) => {
    const { DATA_DIR: directory, REDIS_URL: redis, ALLOW_VOLATILE: allowVolatile } = values;
    if (directory !== undefined && redis !== undefined) {
      return "DATA_DIR: is given beside REDIS_URL, accepted is one of the two: a directory for a gateway of one process, Redis for any number of them";
    }
    const isStored = directory !== undefined || redis !== undefined;
    if (isStored || allowVolatile || inSandbox(values)) return;
    return "DATA_DIR: is missing, and so is REDIS_URL: acknowledged callbacks would be lost when the gateway restarts; accepted is a directory, or REDIS_URL, or ALLOW_VOLATILE=true to keep all state in memory";
  },

  (values) => {
    if (values.WATCH_TOKEN_PREVIOUS_SECRETS.length === 0) return;
    if (values.WATCH_TOKEN_SECRET !== undefined) return;
    return "WATCH_TOKEN_SECRET: is missing beside WATCH_TOKEN_PREVIOUS_SECRETS";
  },

  (values) => {
    const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key, TLS_CLIENT_CA_FILE: clientCa } = values;
    if ((cert && key) || (!cert && !key && !clientCa)) return;
    const missing = cert ? "TLS_KEY_FILE" : "TLS_CERT_FILE";
    return `${missing}: is missing: TLS needs both TLS_CERT_FILE and TLS_KEY_FILE`;
  },

  // It would not tell whether a payout succeeded.
  (values) => {
    const both = [...values.PAYOUT_SUCCESS_STATUSES].find((word) =>
      values.PAYOUT_FAILURE_STATUSES.has(word),
    );
    if (both === undefined) return;
    return `PAYOUT_FAILURE_STATUSES: has ${JSON.stringify(both)}, as PAYOUT_SUCCESS_STATUSES does`;
  },

  (values) => {
    if (!values.PERSISTED_ONLY || values.PERSISTED_DOCUMENTS_FILE !== undefined) return;
    return "PERSISTED_DOCUMENTS_FILE: is missing: PERSISTED_ONLY=true allows its documents alone";
  },

  ({ SHUTDOWN_DELAY: delayMs, SHUTDOWN_TIMEOUT: timeoutMs }) => {
    if (delayMs <= timeoutMs / 2) return;
    return `SHUTDOWN_DELAY: got ${delayMs} ms, accepted is at most half of SHUTDOWN_TIMEOUT (${timeoutMs} ms): calls in flight need time after it`;
  },
];

/** The accounts whose payments service is known, with its address. */
function upstreamsOf({ UPSTREAM_URL: url, MERCHANTS_FILE: merchants }: Values) {
  return Object.entries(merchants?.content ?? { default: { url } }).flatMap(([name, account]) => {
    const own = account.url ?? url;
    return own === undefined ? [] : [{ name, url: own }];
  });
}

/** Whether requests to this URL can be read and changed in transit. */
function isPlaintext(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

/** The merchant accounts by name. The URL of the sandbox's account is empty. */
export function accountsOf(values: Values) {
  const { UPSTREAM_URL: url, MERCHANTS_FILE: merchants } = values;
  const given = merchants?.content ?? {
    default: {
      login: values.UPSTREAM_LOGIN,
      password: values.UPSTREAM_PASSWORD,
      previous_passwords: values.UPSTREAM_PREVIOUS_PASSWORDS,
      url,
    },
  };
  return new Map(
    Object.entries(given).map(([name, account]) => [
      name,
      {
        name,
        url: account.url ?? url ?? "",
        login: account.login,
        password: new Secret(account.password),
        previousPasswords: account.previous_passwords.map((password) => new Secret(password)),
      },
    ]),
  );
}
