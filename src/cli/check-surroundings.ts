import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { parseKeys } from "../auth/api-keys.ts";
import { remoteKeySet } from "../auth/key-set.ts";
import type { Config } from "../config/config.ts";
import { isLoopback } from "../net/loopback.ts";
import { systemCode } from "../net/system-errors.ts";
import { type Finding, findings } from "./finding.ts";
import { faultOf, withoutUserinfo } from "./reach.ts";

/** Checks whether the payments service can reach the callback addresses. */
export async function checkPublicUrl({ publicUrl, accounts }: Config): Promise<Finding> {
  const { ok, warning, failed, skipped } = findings("PUBLIC_URL");
  if (publicUrl === undefined) return skipped("not set: the upstream is on this machine");
  const { protocol, hostname } = new URL(publicUrl);
  const remote = [...accounts.values()].some(
    ({ url }) => url !== "" && !isLoopback(new URL(url).hostname),
  );
  if (remote && isLoopback(hostname)) {
    return warning(
      `${hostname} is an address of this machine`,
      "the payments service sends its callbacks there: give the address that it can reach",
    );
  }
  const [account = "default"] = accounts.keys();
  const callbackUrl = `${withoutUserinfo(publicUrl)}/callbacks/${encodeURIComponent(account)}/payments`;
  const signal = AbortSignal.timeout(5_000);
  const answer = await fetch(callbackUrl, { redirect: "manual", signal }).catch(
    (error: unknown) => error,
  );
  if (systemCode(answer) === "ENOTFOUND") {
    return failed(
      `${hostname} does not resolve (ENOTFOUND)`,
      "correct it: the payments service sends its callbacks there",
    );
  }
  if (remote && protocol === "http:") {
    return warning(
      "callbacks would come unencrypted",
      "give an https URL: callbacks hold personal data",
    );
  }
  if (!(answer instanceof Response)) {
    return warning(
      `${callbackUrl} does not answer from here: ${await faultOf(answer, callbackUrl)}`,
      "fine before the gateway runs, or if this machine cannot reach the internet",
    );
  }
  if (answer.status === 405) return ok(`${callbackUrl} leads to a gateway`);
  return warning(
    `${callbackUrl} answers ${answer.status}: nothing accepts callbacks there`,
    "fine before the gateway runs; otherwise check the proxy in front of it",
  );
}

const soonDays = 30;

/** Checks how long the certificate is valid; `checkFiles` has read the files. */
export function checkTls({ tls }: Config, now = new Date()): Finding {
  const { ok, warning, failed, skipped } = findings("TLS");
  if (!tls) return skipped("not set: the rpc listener is cleartext");
  const { validToDate, validFromDate } = new X509Certificate(readFileSync(tls.certFile));
  const days = Math.floor((validToDate.getTime() - now.getTime()) / 86_400_000);
  const day = validToDate.toISOString().slice(0, 10);
  if (days < 0) return failed(`the certificate expired on ${day}`, "renew it");
  if (validFromDate > now) return failed("the certificate is not valid yet");
  if (days < soonDays) return warning(`the certificate expires on ${day}`, "renew it");
  return ok(`the certificate is good until ${day}`);
}

/** Checks how many API keys the file has and who may write it; `checkFiles` has parsed it. */
export function checkApiKeys({ auth }: Config): Finding {
  const { ok, warning, skipped } = findings("API keys");
  const { apiKeysFile } = auth;
  if (apiKeysFile === undefined) return skipped("AUTH_MODE has no keys");
  const keys = parseKeys(readFileSync(apiKeysFile, "utf8"));
  if (keys.size === 0) return warning("the file has none", "payments-gateway keys new --file …");
  if ((statSync(apiKeysFile).mode & 0o022) !== 0) {
    return warning("users other than its owner may write the file", `chmod go-w ${apiKeysFile}`);
  }
  return ok(`${keys.size} in the file`);
}

/** Fetches the JWT issuer's keys as the gateway does; `checkFiles` has read those in a file. */
export async function checkKeySet({ auth }: Config): Promise<Finding> {
  const { ok, failed, skipped } = findings("JWT keys");
  const source = auth.jwt?.keySet;
  if (!source) return skipped("AUTH_MODE has no jwt");
  if ("file" in source) return ok("a key set in a file");
  let problem: string | undefined;
  const onProblem = (reason: string) => {
    problem = reason;
  };
  const { keyOf } = remoteKeySet(source.url, onProblem);
  // Which key is asked for does not matter: the set is fetched for it.
  await Promise.resolve(keyOf({ alg: "RS256" }, { payload: "", signature: "" })).catch(() => {});
  if (problem === undefined) return ok("a key set at AUTH_JWKS_URL");
  const advice = "correct AUTH_JWKS_URL: without it no JWT can be verified";
  return failed(`AUTH_JWKS_URL cannot be read: ${problem}`, advice);
}
