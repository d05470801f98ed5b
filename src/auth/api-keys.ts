import { hash } from "node:crypto";
import * as z from "zod";
import { unauthenticated } from "../errors.ts";
import { type ReloadedFile, reloadedFiles } from "../net/reloaded-files.ts";
import { type Credential, isScope, type Scope, scopes } from "./caller.ts";

/**
 * Reads the API keys of a file, and again when it changes. It holds only hashes, and a key is found
 * by its hash: the time of a look-up can reveal something of the hash, but not the key.
 * @param accounts names of the merchant accounts: a key that is limited to any other is an error
 * @throws ConfigError for a file that cannot be read or is wrong, naming what is wrong
 */
export function createApiKeys(file: ReloadedFile, accounts: ReadonlySet<string>) {
  const reloaded = reloadedFiles([file], ([text = ""]) => parseKeys(text, accounts), {
    ...file,
    onChange(keys, before) {
      for (const [hash, old] of before) {
        const entry = keys.get(hash);
        // An unchanged key keeps its credential, so its streams stay open.
        if (entry?.text === old.text) keys.set(hash, old);
        else old.withdraw();
      }
    },
  });
  return {
    /** The credential of a key; undefined for a key that is not in the file. */
    find: (key: string): Credential | undefined =>
      reloaded.content.get(hash("sha256", key))?.credential,
    close: reloaded.close,
  };
}

interface KeyEntry {
  readonly credential: Credential;
  /** The entry as one text, to detect a change. */
  readonly text: string;
  readonly withdraw: () => void;
}

/**
 * @param accounts accounts that keys may be limited to; undefined: any
 * @throws Error naming the first thing that is wrong
 */
export function parseKeys(text: string, accounts?: ReadonlySet<string>): Map<string, KeyEntry> {
  const keys = new Map<string, KeyEntry>();
  const names = new Set<string>();
  for (const [index, entry] of entriesOf(text).entries()) {
    const { name, sha256 } = entry;
    const wrong = (what: string) => new Error(`entry ${index} (${name}): ${what}`);
    const unknown = entry.scopes.find((scope) => !isScope(scope));
    if (unknown !== undefined) {
      throw wrong(`unknown scope ${JSON.stringify(unknown)}, accepted are ${scopes.join(", ")}`);
    }
    const strange = entry.merchants?.find((account) => accounts && !accounts.has(account));
    if (strange !== undefined) {
      const known = [...(accounts ?? [])].join(", ");
      throw wrong(
        `unknown account ${JSON.stringify(strange)} in merchants, configured are ${known}`,
      );
    }
    if (names.has(name)) throw wrong("the name is given twice");
    if (keys.has(sha256)) throw wrong("the sha256 is given twice");
    names.add(name);
    keys.set(sha256, keyEntry(entry));
  }
  return keys;
}

const entries = z.array(
  z.strictObject({
    name: z
      .string()
      .regex(/^[\x21-\x7e]([\x20-\x7e]{0,98}[\x21-\x7e])?$/, "1 to 100 visible ASCII characters"),
    sha256: z.string().regex(/^[0-9a-f]{64}$/, "64 hex digits in lower case"),
    scopes: z.array(z.string()),
    merchants: z.array(z.string().min(1)).min(1, "at least one account, or left out").optional(),
  }),
);

/** An entry of API_KEYS_FILE. */
export type FileEntry = z.infer<typeof entries>[number];

function entriesOf(text: string): FileEntry[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // The parser's own message would quote the file.
    throw new Error("is not JSON");
  }
  const result = entries.safeParse(json);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const where = issue?.path.length ? `entry ${issue.path.join(".")}: ` : "";
  throw new Error(`${where}${issue?.message ?? "is wrong"}`);
}

function keyEntry(entry: FileEntry): KeyEntry {
  const { name, merchants } = entry;
  const withdrawn = new AbortController();
  return {
    credential: {
      name: `key:${name}`,
      scopes: new Set(entry.scopes as Scope[]),
      merchants: merchants && new Set(merchants),
      revoked: withdrawn.signal,
    },
    text: JSON.stringify([name, [...entry.scopes].sort(), merchants && [...merchants].sort()]),
    withdraw: () =>
      withdrawn.abort(
        unauthenticated("the API key was removed or changed", { reason: "API_KEY_REVOKED" }),
      ),
  };
}
