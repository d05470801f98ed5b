import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import { FileError } from "../errors.ts";
import type { Tls } from "./one-port.ts";
import { repeat } from "./timer.ts";

/** Paths of a listener's TLS files. */
export interface TlsPaths {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities that must sign clients' certificates; without it, none is asked for. */
  readonly clientCaFile?: string | undefined;
}

export interface TlsFilesOptions {
  readonly paths: TlsPaths;
  /** Called when new files are in force. */
  readonly onChange: (identity: Tls) => void;
  /** Called when new files cannot be used; the previous ones stay in force. */
  readonly onProblem: (error: FileError) => void;
  /** How often the files are read, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number;
}

export type TlsFiles = ReturnType<typeof openTlsFiles>;

/**
 * Reads a listener's TLS files, and reads them again at each interval to detect changes: file
 * watchers of the operating system lose a file that is replaced by a rename or behind a link. A
 * change takes effect once two consecutive reads agree, since the files may be written one after
 * the other.
 * @throws FileError for files that cannot be used at start
 */
export function openTlsFiles(options: TlsFilesOptions) {
  const { paths, onChange, onProblem, intervalMs = 1_000 } = options;
  let inForce = fitting(identityOf(variablesOf(paths).map(readNow)));
  let lastSeen = inForce;
  let lastReported: string | undefined;

  async function look(): Promise<void> {
    const texts = await Promise.all(variablesOf(paths).map(readSoon));
    const seen = identityOf(texts);
    const atRest = isDeepStrictEqual(seen, lastSeen);
    lastSeen = seen;
    if (!atRest) return;
    if (!isDeepStrictEqual(seen, inForce)) {
      inForce = fitting(seen);
      onChange(inForce);
    }
    lastReported = undefined;
  }

  /** Reports a problem once, however long it lasts. */
  function report(problem: FileError): void {
    const text = `${problem.variable} ${problem.message}`;
    if (text !== lastReported) onProblem(problem);
    lastReported = text;
  }

  const { close } = repeat(
    () => look().catch(report),
    () => intervalMs,
    intervalMs,
  );
  return {
    /** The identity that is in force. */
    get identity(): Tls {
      return inForce;
    },
    close,
  };
}

type TlsFile = readonly [variable: string, path: string];

function variablesOf({ certFile, keyFile, clientCaFile }: TlsPaths): readonly TlsFile[] {
  const both: TlsFile[] = [
    ["TLS_CERT_FILE", certFile],
    ["TLS_KEY_FILE", keyFile],
  ];
  return clientCaFile === undefined ? both : [...both, ["TLS_CLIENT_CA_FILE", clientCaFile]];
}

function identityOf([cert = "", key = "", clientCa]: readonly string[]): Tls {
  return { cert, key, ...(clientCa === undefined ? {} : { clientCa }) };
}

function readNow([variable, path]: TlsFile): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(variable, error);
  }
}

async function readSoon([variable, path]: TlsFile): Promise<string> {
  return readFile(path, "utf8").catch((error) => {
    throw unreadable(variable, error);
  });
}

function unreadable(variable: string, error: unknown): FileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new FileError(variable, `cannot be read (${code ?? message})`);
}

/** Returns the identity if its parts can be used together. @throws FileError otherwise */
function fitting(identity: Tls): Tls {
  const { cert, key, clientCa } = identity;
  const [leaf] = certificates("TLS_CERT_FILE", cert);
  if (!leaf?.checkPrivateKey(privateKey(key))) {
    throw new FileError("TLS_KEY_FILE", "is not the key of the first certificate in TLS_CERT_FILE");
  }
  if (clientCa !== undefined) certificates("TLS_CLIENT_CA_FILE", clientCa);
  try {
    createSecureContext({ cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new FileError("TLS_CERT_FILE", `cannot be used (${code ?? message})`);
  }
  return identity;
}

/**
 * The certificates in a PEM text. OpenSSL would read a text without one as an empty list of
 * authorities, which rejects every client.
 * @throws FileError if there is none, or one is malformed
 */
function certificates(variable: string, text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new FileError(variable, "has no PEM certificate");
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new FileError(variable, `its certificate ${index + 1} is not well-formed`);
    }
  });
}

function privateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new FileError("TLS_KEY_FILE", "has no PEM private key without a passphrase");
  }
}
