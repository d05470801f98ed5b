import { createHash, randomBytes } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { createReadJwt } from "../../src/auth/jwt.ts";
import type { KeySet } from "../../src/auth/key-set.ts";
import type { ReloadedFile } from "../../src/net/reloaded-files.ts";
import { reportTo } from "../../src/report.ts";
import { directory } from "../stores/sqlite/directories.ts";

/** The issuer and the audience of the tokens that tests sign. */
export const issuer = "https://login.shop.example/";
export const audience = "payments-gateway";

type SigningKey = Awaited<ReturnType<typeof signingKey>>;

export async function signingKey(kid: string, alg = "ES256") {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: "sig" };
  return { kid, alg, privateKey, publicKey, jwk };
}

/** A valid token with the test's changes. Claims that are undefined are left out. */
export function signToken(
  key: SigningKey,
  claims: Record<string, unknown> = {},
  header: { alg?: string; kid?: string } = {},
): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const payload = {
    iss: issuer,
    aud: audience,
    sub: "backend",
    iat: now,
    exp: now + 600,
    ...claims,
  };
  return new SignJWT(JSON.parse(JSON.stringify(payload)))
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey);
}

/** Reads the tokens of these keys. */
export const readerOf = (keys: Omit<KeySet, "close">) =>
  createReadJwt({
    ...{ keys, issuer, audience },
    ...{ customerClaim: "customer_external_id", serviceClaim: "client_id" },
  });

export interface KeyEntry {
  readonly name: string;
  readonly key: string;
  readonly scopes: readonly string[];
  readonly merchants?: readonly string[];
}

/** A random API key, as a calling service would have it. */
export const newKey = () => randomBytes(24).toString("base64url");

/** The text of an API_KEYS_FILE. */
export function keysText(entries: readonly KeyEntry[]): string {
  return JSON.stringify(
    entries.map(({ key, ...entry }) => ({
      ...entry,
      sha256: createHash("sha256").update(key).digest("hex"),
    })),
  );
}

/** A file of keys that is checked often, and what is done on its reports; default: nothing. */
export const keyFile = (
  path: string,
  onReload = () => {},
  onProblem: (reason: string) => void = () => {},
): ReloadedFile => ({
  ...{ variable: "KEYS", path, intervalMs: 5 },
  report: reportTo({
    filesChanged: () => onReload(),
    filesUnusable: ({ reason }) => onProblem(reason),
  }),
});

/** The environment that accepts these keys and, if there is a signing key, its tokens. */
export const accessEnv = (
  files: ReturnType<typeof scratch>,
  entries: readonly KeyEntry[],
  signing?: SigningKey,
): Record<string, string> => ({
  AUTH_MODE: signing ? "keys,jwt" : "keys",
  API_KEYS_FILE: files.write("keys", keysText(entries)),
  ...(signing && {
    AUTH_JWKS_FILE: files.write("jwks", JSON.stringify({ keys: [signing.jwk] })),
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: audience,
  }),
});

/** A temporary directory, which is removed after the tests of the file. */
export function scratch() {
  const dir = directory({ after });
  return {
    /** Writes a file as a deployment does, whole by a rename, and returns its path. */
    write(name: string, text: string): string {
      const path = join(dir, name);
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
      return path;
    },
  };
}
