import { z } from "zod";
import { Secret } from "../secrets/secret.ts";
import type { MerchantAccount } from "../upstream/upstream.ts";
import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { sandboxDefaults } from "./sandbox.ts";
import { login, merchants, password } from "./values.ts";
import { jsonOf } from "./variable.ts";

/** The only account of a gateway without MERCHANTS_FILE. Without a URL it is the sandbox's. */
export function defaultAccount(read: Reader, upstreamUrl: string | undefined): MerchantAccount {
  const sandbox = upstreamUrl === undefined;
  const previous = read("UPSTREAM_PREVIOUS_PASSWORDS", z.string(), "");
  return {
    name: "default",
    url: upstreamUrl ?? "",
    login: read("UPSTREAM_LOGIN", login, sandbox ? sandboxDefaults.login : undefined),
    password: new Secret(
      read("UPSTREAM_PASSWORD", password, sandbox ? sandboxDefaults.password : undefined),
    ),
    previousPasswords: previous
      .split(",")
      .filter((password) => password !== "")
      .map((password) => new Secret(password)),
  };
}

/** The accounts of MERCHANTS_FILE. @throws ConfigError */
export function readMerchants(
  path: string,
  upstreamUrl: string | undefined,
): ReadonlyMap<string, MerchantAccount> {
  const fail = (what: string): never => {
    throw new ConfigError("MERCHANTS_FILE", `${path}: ${what}`);
  };
  const json = jsonOf("MERCHANTS_FILE", path);
  const result = merchants.safeParse(json);
  if (!result.success) {
    const issue = result.error.issues[0];
    return fail(`${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is wrong"}`);
  }
  const accounts = Object.entries(result.data).map(([name, merchant]) => {
    const url = merchant.url ?? upstreamUrl;
    if (url === undefined) return fail(`${name}: has no url, and UPSTREAM_URL is not set`);
    return {
      name,
      url,
      login: merchant.login,
      password: new Secret(merchant.password),
      previousPasswords: merchant.previous_passwords.map((p) => new Secret(p)),
    };
  });
  if (accounts.length === 0) return fail("names no merchant");
  return new Map(accounts.map((account) => [account.name, account]));
}
