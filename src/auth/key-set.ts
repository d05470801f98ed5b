import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  jwksCache,
} from "jose";
import { GatewayError } from "../errors.ts";
import { type ReloadedFile, reloadedFiles } from "../net/reloaded-files.ts";
import { codeInWords, systemCode } from "../net/system-errors.ts";

/** The public keys that callers' JWTs are verified with. */
export interface KeySet {
  readonly keyOf: JWTVerifyGetKey;
  /**
   * Changes whenever the keys may have changed: a token verified under another version must be
   * verified again. Undefined while no earlier verification may be relied on.
   */
  version(): unknown;
  close(): void;
}

/**
 * Keys of a file, which is read again when it changes.
 * @throws ConfigError for a file that cannot be read or is wrong, naming what is wrong
 */
export function fileKeySet(file: ReloadedFile): KeySet {
  const reloaded = reloadedFiles([file], ([text = ""]) => parseKeySet(text), file);
  return {
    keyOf: (header, token) => reloaded.content(header, token),
    version: () => reloaded.content,
    close: reloaded.close,
  };
}

/**
 * Keys of a URL: fetched when first needed, again in the background as they age, and again for an
 * unknown key, so that a key rotation needs no action here. While the issuer is unreachable, the
 * last set is used until it is too old.
 * @param onProblem the set could not be fetched, for this reason, which quotes nothing
 * @param timeoutMs the longest that a fetch may take
 */
export function remoteKeySet(
  url: string,
  onProblem: (reason: string) => void,
  timeoutMs = 5_000,
): KeySet {
  const cache: { uat?: number } = {};
  const remote = createRemoteJWKSet(new URL(url), {
    timeoutDuration: timeoutMs,
    cooldownDuration: cooldownMs,
    cacheMaxAge: staleMs,
    [jwksCache]: cache as Record<string, never>,
    [customFetch]: fetchBounded,
  });

  let triedAt = Number.NEGATIVE_INFINITY;
  function refreshInBackground(): void {
    const now = Date.now();
    if (cache.uat === undefined || now - cache.uat < refreshMs) return;
    if (now - triedAt < cooldownMs) return;
    triedAt = now;
    remote.reload().catch((error) => onProblem(faultOf(error)));
  }

  return {
    async keyOf(header, token) {
      refreshInBackground();
      try {
        return await remote(header, token);
      } catch (error) {
        if (isNoKey(error)) throw error;
        onProblem(faultOf(error));
        throw new GatewayError("UNAVAILABLE", "the issuer's key set cannot be fetched right now", {
          reason: "KEY_SET_UNAVAILABLE",
          retryAfterMs: 1_000,
          cause: error,
        });
      }
    },
    version() {
      refreshInBackground();
      const { uat } = cache;
      return uat !== undefined && Date.now() - uat < staleMs ? uat : undefined;
    },
    close() {},
  };
}

/** How old a set may grow before it is fetched again. */
const refreshMs = 600_000;
/** Age up to which a set is used when it cannot be fetched again. */
const staleMs = 3_600_000;
/** The shortest time between two fetches for unknown keys. */
const cooldownMs = 30_000;

/** Fetches an answer of at most `maxSetBytes`, and reads none that is not a key set. */
async function fetchBounded(url: string, options: RequestInit): Promise<Response> {
  const { status, body } = await fetch(url, options);
  if (status !== 200 || !body) {
    await body?.cancel();
    throw new UnusableAnswer(`HTTP ${status}`);
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the rest.
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxSetBytes) throw new UnusableAnswer(`the key set is over ${maxSetBytes} bytes`);
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks));
}

/** An answer that is not read as a key set. The message holds nothing of it. */
class UnusableAnswer extends Error {}

/** Why a set could not be fetched, in words: other messages may quote the answer. */
function faultOf(error: unknown): string {
  if (error instanceof UnusableAnswer) return error.message;
  if (error instanceof errors.JWKSTimeout) return "no answer in time";
  if (error instanceof errors.JOSEError) return "the answer is not a JSON Web Key Set";
  return codeInWords(systemCode(error) ?? "failed");
}

/** A key takes about half a KiB. */
const maxSetBytes = 1024 * 1024;

function isNoKey(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}

/** @throws Error naming what is wrong, never a part of a key */
function parseKeySet(text: string): JWTVerifyGetKey {
  let set: JSONWebKeySet;
  let keyOf: JWTVerifyGetKey;
  try {
    set = JSON.parse(text);
    keyOf = createLocalJWKSet(set);
  } catch {
    throw new Error("is not a JSON Web Key Set");
  }
  for (const { kid, d, k } of set.keys) {
    if (d === undefined && k === undefined) continue;
    throw new Error(`the key ${JSON.stringify(kid ?? "")} is secret: only public keys belong here`);
  }
  return keyOf;
}
