import { z } from "zod";

/** Where a listener listens. Port 0 lets the system pick one. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Below are the schemas of the variables; each schema's message says what it accepts. */
const nonEmpty = (what: string) => z.string().min(1, what);
export const login = nonEmpty("the merchant's login").regex(/^[^:]*$/, "a login without a colon");
export const password = nonEmpty("the merchant's API password");
/** A base URL: paths are appended to it, so it has no trailing slash. */
export const baseUrl = z
  .string()
  .refine(
    (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? "") && !/[?#]/.test(text),
    "an absolute http or https URL without a query",
  )
  .transform((text) => text.replace(/(?<!\/)\/+$/, ""));

export const merchants = z.record(
  z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "a name of letters, digits, _ and -, at most 64"),
  z.strictObject({
    login,
    password: nonEmpty("a password"),
    previous_passwords: z.array(nonEmpty("a password")).default([]),
    url: baseUrl.optional(),
  }),
);

export const boolean = z
  .string()
  .regex(/^(true|false)$/, "true or false")
  .transform((text) => text === "true");

export const words = z
  .string()
  .transform((text) => text.split(",").map((word) => word.trim().toLowerCase()))
  .refine(
    (words) => words.every((word) => word !== "" && word !== "init"),
    "statuses with commas between, such as success,completed",
  );

export const address = z.string().transform((text, context): Address => {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host !== undefined && port <= 65_535) return { host, port };
  context.addIssue("host:port, such as 127.0.0.1:4000 or [::1]:4000");
  return z.NEVER;
});

export const path = nonEmpty("the path of a file");
export const directory = nonEmpty("a directory that this process alone writes");
export const issuer = nonEmpty("the `iss` of callers' tokens, such as https://login.shop.example/");
export const audience = nonEmpty("the `aud` that callers' tokens have for this gateway");

/** Used unchanged, unlike a base URL. */
export const keySetUrl = z
  .string()
  .refine(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    "an http or https URL of a JSON Web Key Set (or AUTH_JWKS_FILE)",
  );

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Ten years: longer durations are typos. One timer can wait only 2^31 - 1 ms (24 days). */
const maxMs = 3_650 * unitsMs.d;

function durationMs(text: string): number | undefined {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text);
  if (!match) return undefined;
  const ms = Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs];
  return ms <= maxMs ? ms : undefined;
}

export const duration = z.string().transform((text, context): number => {
  const ms = durationMs(text);
  if (ms !== undefined && ms > 0) return ms;
  context.addIssue("a whole number above 0 with a unit, ms, s, m, h or d, such as 500ms or 7d");
  return z.NEVER;
});

/** A longer interval would keep no connection alive. */
export const heartbeat = duration.refine(
  (ms) => ms <= unitsMs.h,
  "at most 1h, with a unit, such as 15s",
);

export const durationOrZero = z.string().transform((text, context): number => {
  const ms = text === "0" ? 0 : durationMs(text);
  if (ms !== undefined) return ms;
  context.addIssue("0 for none, or a whole number with a unit, ms, s, m, h or d, such as 60s");
  return z.NEVER;
});

export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .refine(
      (text) => /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max,
      `a whole number from ${min} to ${max}`,
    )
    .transform(Number);

export const share = z
  .string()
  .refine(
    (text) => /^(0|0?\.\d+|0\.\d+)$/.test(text),
    "a share of at least 0 and below 1, such as 0.2",
  )
  .transform(Number);

export const authModes = z
  .string()
  .transform((text, context): ReadonlySet<"none" | "keys" | "jwt"> => {
    const modes = new Set(text.split(",").map((mode) => mode.trim()));
    const known = [...modes].every((mode) => ["none", "keys", "jwt"].includes(mode));
    if (known && !(modes.has("none") && modes.size > 1))
      return modes as Set<"none" | "keys" | "jwt">;
    context.addIssue("none, or keys, or jwt, or keys,jwt");
    return z.NEVER;
  });

export const documentMap = z.record(z.string().min(1), z.string().min(1)).transform(Object.entries);

export const watchSecret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, "a secret of at least 32 bytes");

/** Joined by commas, so none of these secrets may contain one. */
export const watchSecrets = z.string().transform((text, context): readonly string[] => {
  const all = text.split(",").filter((secret) => secret !== "");
  if (all.every((secret) => Buffer.byteLength(secret) >= 32)) return all;
  context.addIssue("secrets of at least 32 bytes each, joined by commas");
  return z.NEVER;
});

export const origins = z.string().transform((text, context): readonly string[] => {
  const all = text
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  if (all.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)) return all;
  context.addIssue("origins joined by commas, such as https://shop.example");
  return z.NEVER;
});

export const redisPrefix = z
  .string()
  .regex(/^[A-Za-z0-9_:.-]{1,64}$/, "letters, digits and _ : . -, at most 64");

export const redisUrls = z
  .string()
  .refine(
    (text) =>
      text.startsWith("redis+sentinel:") ? isSentinelSet(text) : nodesOf(text).every(isNode),
    "redis:// or rediss://, several of them joined by commas for a cluster, or redis+sentinel://host:port,host:port/master-name",
  )
  .refine(
    (text) => new Set(nodesOf(text).map((node) => URL.parse(node)?.protocol)).size === 1,
    "a cluster's nodes: all redis:// or all rediss://",
  )
  .refine(
    (text) =>
      nodesOf(text).length === 1 || nodesOf(text).every((node) => /^\/?0?$/.test(pathOf(node))),
    "addresses without a database's number: a cluster has no databases",
  );

function nodesOf(text: string): readonly string[] {
  return text.startsWith("redis+sentinel:") ? [text] : text.split(",").map((node) => node.trim());
}

function isSentinelSet(text: string): boolean {
  const match = /^redis\+sentinel:\/\/(?:([^/\s]*)@)?([^/@\s]+)\/[^/\s]+$/.exec(text);
  if (!match) return false;
  const [, user = "", hosts = ""] = match;
  return isDecodable(user) && hosts.split(",").every((host) => URL.canParse(`redis://${host}`));
}

function isNode(text: string): boolean {
  const url = /^rediss?:\/\/[^\s]+$/.test(text) ? URL.parse(text) : null;
  if (!url || !/^\/?\d*$/.test(url.pathname)) return false;
  return isDecodable(url.username) && isDecodable(url.password);
}

function pathOf(node: string): string {
  return URL.parse(node)?.pathname ?? "";
}

/** Whether the percent-encoding of a URL's credentials is valid. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a replica can become the primary: Sentinels and clusters promote one on a failure. */
export function hasFailover(redisUrl: string): boolean {
  return redisUrl.startsWith("redis+sentinel:") || redisUrl.includes(",");
}

/** REDIS_MIN_REPLICAS */
export const minReplicas = z.union([z.literal("all"), wholeNumber(0, 100)], {
  error: "all, or a whole number from 0 to 100",
});

export const logLevel = z
  .string()
  .regex(
    /^(trace|debug|info|warn|error|fatal|silent)$/,
    "trace, debug, info, warn, error, fatal or silent",
  );
