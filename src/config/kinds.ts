import { readFileSync } from "node:fs";
import { validateHeaderName, validateHeaderValue } from "node:http";
import * as z from "zod";
import { bearerText } from "../auth/caller.ts";
import { payoutSteps } from "../model/payout-statuses.ts";
import { percentDecoded } from "../net/address-text.ts";
import { parseRedisUrl } from "../redis/url.ts";

/** A kind of value: what it accepts, in words, and how its text is read. */
export interface ValueKind<T> {
  readonly accepts: string;
  /**
   * The value, or undefined if the text is not accepted.
   * @throws FileProblem if the text names a file that cannot be used
   */
  read(text: string): T | undefined;
}

/** Says what is wrong with a file, without its secrets. */
export class FileProblem extends Error {}

function kind<T>(accepts: string, read: (text: string) => T | undefined): ValueKind<T> {
  return { accepts, read };
}

function matching(accepts: string, pattern: RegExp): ValueKind<string> {
  return kind(accepts, (text) => (pattern.test(text) ? text : undefined));
}

export const text = (what: string) => matching(what, /./s);
export const path = text("the path of a file");
export const accountName = matching(
  "a name of letters, digits, _ and -, at most 64",
  /^[A-Za-z0-9_-]{1,64}$/,
);
export const login = matching("the merchant's login, without a colon", /^[^:]+$/);
export const password = text("the merchant's API password");
export const passwords = kind("passwords joined by commas", (text) =>
  text.split(",").filter((password) => password !== ""),
);

export const boolean = kind("true or false", (text) =>
  text === "true" ? true : text === "false" ? false : undefined,
);

export function oneOf<const T extends string>(...values: readonly T[]): ValueKind<T> {
  const accepts = values.join(", ").replace(/, ([^,]*)$/, " or $1");
  return kind(accepts, (text) => values.find((value) => value === text));
}

export function wholeNumber(min: number, max: number): ValueKind<number> {
  return kind(`a whole number from ${min} to ${max}`, (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : -1;
    return number >= min && number <= max ? number : undefined;
  });
}

export const shareOrAll = kind("a share from 0 to 1, such as 0.1", (text) =>
  /^(0|1|0?\.\d+|1\.0+)$/.test(text) ? Number(text) : undefined,
);

export const share = kind("a share of at least 0 and below 1, such as 0.2", (text) => {
  const number = shareOrAll.read(text);
  return number === 1 ? undefined : number;
});

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Longer durations are typos. One timer can wait only 2^31 - 1 ms (24 days). */
const tenYears = "3650d";

function msOf(text: string): number | undefined {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs] : undefined;
}

/** A duration, in milliseconds. `zero`: `0` is accepted and stands for none. */
export function duration({ zero = false, max = tenYears } = {}): ValueKind<number> {
  const number = `${zero ? "0 for none, or a whole number" : "a whole number above 0"} with a unit`;
  const bound = max === tenYears ? "" : `, at most ${max}`;
  const maxMs = msOf(max) ?? 0;
  return kind(`${number}, such as 500ms, 30s, 5m, 24h or 7d${bound}`, (text) => {
    const ms = zero && text === "0" ? 0 : msOf(text);
    return ms !== undefined && ms <= maxMs && (zero || ms > 0) ? ms : undefined;
  });
}

export const milliseconds = wholeNumber(1, 999_999_999);

export const address = kind("host:port, such as 127.0.0.1:4000 or [::1]:4000", (text) => {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host !== undefined && port <= 65_535 ? { host, port } : undefined;
});

/** Where a listener listens. Port 0 lets the system pick one. */
export type Address = Readonly<NonNullable<ReturnType<typeof address.read>>>;

const isHttp = (text: string) => /^https?:$/.test(URL.parse(text)?.protocol ?? "");

/** Paths are appended to it, so it has no trailing slash, and no line break that a URL would lose. */
export const baseUrl = kind("an absolute http or https URL without a query", (text) =>
  isHttp(text) && !/[?#]/.test(text) ? new URL(text).href.replace(/(?<!\/)\/+$/, "") : undefined,
);

/** Used unchanged, unlike a base URL. It has no credentials, since a request would not send them. */
export function httpUrl(accepts: string): ValueKind<string> {
  return kind(`${accepts}, without a user name or a password`, (text) => {
    const { username, password } = URL.parse(text) ?? {};
    return isHttp(text) && !username && !password ? text : undefined;
  });
}

const anyPort = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\*$/;

export const origins = kind(
  "origins joined by commas, such as https://shop.example; http://localhost:* stands for all ports of this machine",
  (text) => {
    const all = text.split(",").map((origin) => origin.trim());
    const given = all.filter((origin) => origin !== "");
    const isOrigin = (origin: string) => URL.parse(origin)?.origin === origin;
    return given.every((one) => isOrigin(one) || anyPort.test(one)) ? given : undefined;
  },
);

/** Statuses of the payments service that end a payout, in lower case. */
export const statuses = kind(
  "statuses with commas between, such as success,completed",
  (text): ReadonlySet<string> | undefined => {
    const words = text.split(",").map((word) => word.trim().toLowerCase());
    return words.some((word) => payoutSteps.has(word)) ? undefined : new Set(words);
  },
);

type AuthMode = "none" | "keys" | "jwt";

export const authModes = kind("none, or keys, or jwt, or keys,jwt", (text) => {
  const modes = new Set(text.split(",").map((mode) => mode.trim()));
  if (modes.has("none") && modes.size > 1) return undefined;
  const known = [...modes].every((mode) => ["none", "keys", "jwt"].includes(mode));
  return known ? (modes as ReadonlySet<AuthMode>) : undefined;
});

const isLong = (secret: string) => Buffer.byteLength(secret) >= 32;

export const longSecret = kind("a secret of at least 32 bytes", (text) =>
  isLong(text) ? text : undefined,
);

/** Compared with what operators send as `Authorization: Bearer …`. */
export const bearerSecret = kind(
  "a secret of at least 32 characters, all visible and of ASCII, without spaces",
  (text) => (isLong(text) && bearerText.test(text) ? text : undefined),
);

/** Joined by commas, so none of these secrets may contain one. */
export const watchSecrets = kind("secrets of at least 32 bytes each, joined by commas", (text) => {
  const all = text.split(",").filter((secret) => secret !== "");
  return all.every(isLong) ? all : undefined;
});

export const redisPrefix = matching(
  "letters, digits and _ : . -, at most 64",
  /^[A-Za-z0-9_:.-]{1,64}$/,
);

export const minReplicas = kind("all, or a whole number from 0 to 100", (text) =>
  text === "all" ? ("all" as const) : wholeNumber(0, 100).read(text),
);

export const redisUrls = kind(
  "redis:// or rediss://; several of them joined by commas for a cluster, then all redis:// or all rediss://, and without a database's number, since a cluster has no databases; or redis+sentinel:// or rediss+sentinel:// with host:port,host:port/master-name",
  (text) => (parseRedisUrl(text) ? text : undefined),
);

/** Names joined by commas; `none` stands for no names. */
export function names<const Name extends string>(...known: readonly Name[]) {
  return kind(`none, or ${known.join(", ")} joined by commas`, (text) => {
    const given = [...new Set(text.split(",").map((name) => name.trim()))];
    if (given.join() === "none") return [];
    return given.every((name): name is Name => known.includes(name as Name)) ? given : undefined;
  });
}

/** OTEL_SEMCONV_STABILITY_OPT_IN is for all libraries of a process: others' categories are valid. */
export const categories = kind("categories joined by commas, such as rpc/dup", (text) =>
  /^ *[a-z_]+(?:\/dup)? *(?:, *[a-z_]+(?:\/dup)? *)*$/.test(text)
    ? text.split(",").map((name) => name.trim())
    : undefined,
);

const samplers = ["always_on", "always_off", "traceidratio"] as const;
export const sampler = oneOf(
  ...samplers,
  ...samplers.map((name) => `parentbased_${name}` as const),
);

/** `lowmemory` differs from `delta` only in kinds of metrics that are not sent here. */
export const temporality = kind("cumulative, delta or lowmemory", (text) => {
  if (!/^(cumulative|delta|lowmemory)$/i.test(text)) return undefined;
  return text.toLowerCase() === "cumulative" ? "cumulative" : "delta";
});

export const pairs = kind("key=value pairs joined by commas, percent-encoded", (text) => {
  const found: Record<string, string> = {};
  for (const pair of text.split(",").filter((part) => part.trim() !== "")) {
    const match = /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair);
    const key = percentDecoded(match?.[1] ?? "");
    const value = percentDecoded(match?.[2]?.trim() ?? "");
    if (!key || value === undefined) return undefined;
    found[key] = value;
  }
  return found;
});

const headersInWords =
  "key=value pairs of a header and its value, joined by commas, percent-encoded";

export const headers = kind(headersInWords, (text) => {
  const found = pairs.read(text);
  try {
    for (const [name, value] of Object.entries(found ?? {})) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    return found;
  } catch {
    return undefined;
  }
});

export const pemFile = kind("the path of a PEM file that can be read", (path) => {
  const text = fileText(path);
  return /^-----BEGIN /m.test(text) ? text : undefined;
});

/** The path itself: the file is read again and again. */
export const readableFile = kind("the path of a file that can be read", (file) => {
  fileText(file);
  return file;
});

/** The text of a file, without the byte order mark that some editors begin it with. @throws FileProblem */
export function fileText(path: string): string {
  try {
    return new TextDecoder().decode(readFileSync(path));
  } catch (error) {
    throw new FileProblem(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** The value in a file, without the line break that editors add at its end. @throws FileProblem */
export function valueIn(path: string): string {
  return fileText(path).replace(/\r?\n$/, "");
}

/** The path of a JSON file, which is read by a schema. */
function jsonFile<T>(accepts: string, schema: z.ZodType<T>) {
  return kind(accepts, (path) => {
    const json = parsed(path, fileText(path));
    const { data, error } = schema.safeParse(json);
    if (!error) return { path, content: data };
    const problems = error.issues.map((issue) => {
      // What is wrong with a member's name is told within.
      const { message } = issue.code === "invalid_key" ? (issue.issues[0] ?? issue) : issue;
      return issue.path.length === 0 ? message : `${issue.path.join(".")}: ${message}`;
    });
    throw new FileProblem(`${path}: ${problems.join("; ")}; accepted is ${accepts}`);
  });
}

/** Of members with one name JSON.parse keeps the last. @throws FileProblem if there are such */
function parsed(path: string, text: string): unknown {
  let kept = 0;
  let json: unknown;
  try {
    json = JSON.parse(text, (_, value) => {
      if (value instanceof Object && !Array.isArray(value)) kept += Object.keys(value).length;
      return value;
    });
  } catch {
    throw new FileProblem(`${path}: is not JSON`);
  }
  const texts = [...text.matchAll(/[^"]*"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/gy)];
  if (texts.filter(([, colon]) => colon).length > kept) {
    throw new FileProblem(`${path}: has a name twice in one object`);
  }
  return json;
}

const nonEmpty = z.string().min(1, "is empty");

export const merchantsFile = jsonFile(
  "the path of a JSON file of merchant accounts by name",
  z
    .record(
      z.string().refine((name) => accountName.read(name), `is not ${accountName.accepts}`),
      z.strictObject({
        login: z.string().regex(/^[^:]+$/, login.accepts),
        password: nonEmpty,
        previous_passwords: z.array(nonEmpty).default([]),
        url: z
          .string()
          .refine((url) => baseUrl.read(url) !== undefined, baseUrl.accepts)
          .transform((url) => baseUrl.read(url) ?? "")
          .optional(),
      }),
    )
    .refine((merchants) => Object.keys(merchants).length > 0, "names no merchant"),
);

export const documentsFile = jsonFile(
  "the path of a JSON file of GraphQL documents by their ids",
  z.record(nonEmpty, nonEmpty),
);
