import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import { reloadedFile } from "./auth/reloaded-file.ts";

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
 * Reads the files of a listener's TLS and keeps looking at them. A change is taken up when the files
 * have come to rest, since they may be written one after the other.
 * @throws TlsFileError for files that cannot be used at start
 */
export function openTlsFiles(options: TlsFilesOptions): TlsFiles {
  const { paths, onChange, onProblem, intervalMs = 1_000 } = options;
  let identity = read(paths);
  let settling: NodeJS.Timeout | undefined;

  function settle(): void {
    clearTimeout(settling);
    settling = setTimeout(renew, intervalMs).unref();
  }

  function renew(): void {
    try {
      const newIdentity = read(paths);
      if (isDeepStrictEqual(newIdentity, identity)) return;
      identity = newIdentity;
      onChange(newIdentity);
    } catch (error) {
      onProblem(error as TlsFileError);
    }
  }

  const files = variablesOf(paths).map(([variable, path]) =>
    reloadedFile({
      path,
      parse: (text) => text,
      onChange: settle,
      onProblem: (error) => onProblem(unreadable(variable, error)),
      intervalMs,
    }),
  );
  // What changed between the reading and the watching.
  settle();
  return {
    identity,
    close() {
      clearTimeout(settling);
      for (const file of files) file.close();
    },
  };
}

function variablesOf({ certFile, keyFile, clientCaFile }: TlsPaths): [string, string][] {
  const both: [string, string][] = [
    ["TLS_CERT_FILE", certFile],
    ["TLS_KEY_FILE", keyFile],
  ];
  return clientCaFile === undefined ? both : [...both, ["TLS_CLIENT_CA_FILE", clientCaFile]];
}

function read(paths: TlsPaths): TlsIdentity {
  const texts = variablesOf(paths).map(([variable, path]) => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      throw unreadable(variable, error);
    }
  });
  const [cert = "", key = "", clientCa] = texts;
  return fitting({ cert, key, ...(clientCa === undefined ? {} : { clientCa }) });
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
  if (blocks.length === 0) throw new TlsFileError(variable, "holds no PEM certificate");
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
    throw new TlsFileError("TLS_KEY_FILE", "holds no PEM private key without a passphrase");
  }
}
