import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { isDeepStrictEqual } from "node:util";

/** Where the parts of a listener's TLS are. */
export interface TlsPaths {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities one of which must have signed a client's certificate; without it none is asked for. */
  readonly clientCaFile?: string;
}

/** A listener's TLS, as PEM texts that fit together. */
export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string;
}

export interface TlsFilesOptions {
  readonly paths: TlsPaths;
  /** New files are in force. */
  readonly onChange: (identity: TlsIdentity) => void;
  /** New files cannot be used: the ones before stay in force. */
  readonly onProblem: (error: TlsFileError) => void;
  /** How often the files are looked at, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number;
}

export interface TlsFiles {
  /** What is in force now. */
  readonly identity: TlsIdentity;
  close(): void;
}

/** A file that is wrong. Its message never holds anything of a key. */
export class TlsFileError extends Error {
  override readonly name = "TlsFileError";
  /** The variable that names the file. */
  readonly variable: string;
  constructor(variable: string, message: string) {
    super(message);
    this.variable = variable;
  }
}

/**
 * Reads the files of a listener's TLS and keeps looking at them, by their texts: watchers of the
 * operating system lose a file that is replaced by a rename or behind a link. A change is taken up
 * when two looks have found the same, since the files may be written one after the other.
 * @throws TlsFileError for files that cannot be used at start
 */
export function openTlsFiles(options: TlsFilesOptions): TlsFiles {
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

  /** Once, however long it lasts. */
  function report(problem: TlsFileError): void {
    const text = `${problem.variable} ${problem.message}`;
    if (text !== lastReported) onProblem(problem);
    lastReported = text;
  }

  let closed = false;
  let timer: NodeJS.Timeout;
  const lookLater = () => {
    timer = setTimeout(async () => {
      await look().catch(report);
      if (!closed) lookLater();
    }, intervalMs).unref();
  };
  lookLater();
  return {
    get identity() {
      return inForce;
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
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

function identityOf([cert = "", key = "", clientCa]: readonly string[]): TlsIdentity {
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

function unreadable(variable: string, error: unknown): TlsFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new TlsFileError(variable, `cannot be read (${code ?? message})`);
}

/** @throws TlsFileError where the parts cannot be used, or not together */
function fitting(identity: TlsIdentity): TlsIdentity {
  const { cert, key, clientCa } = identity;
  const [leaf] = certificates("TLS_CERT_FILE", cert);
  if (!leaf?.checkPrivateKey(privateKey(key))) {
    throw new TlsFileError(
      "TLS_KEY_FILE",
      "is not the key of the first certificate in TLS_CERT_FILE",
    );
  }
  if (clientCa !== undefined) certificates("TLS_CLIENT_CA_FILE", clientCa);
  try {
    createSecureContext({ cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new TlsFileError("TLS_CERT_FILE", `cannot be used (${code ?? message})`);
  }
  return identity;
}

/** OpenSSL takes a text without a certificate for an empty list of authorities, which nobody is of. */
function certificates(variable: string, text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new TlsFileError(variable, "has no PEM certificate");
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new TlsFileError(variable, `its certificate ${index + 1} is not well-formed`);
    }
  });
}

function privateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new TlsFileError("TLS_KEY_FILE", "has no PEM private key without a passphrase");
  }
}
