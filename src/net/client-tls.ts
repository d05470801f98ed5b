import { readFileSync } from "node:fs";

/** Files for TLS with a server: whom to trust, and what a server that asks for a certificate gets. */
export interface ClientTlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** PEM texts, as Node's TLS takes them. */
export interface ClientTlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * The options of a TLS connection, which read the files each time: whoever opens a connection with
 * them has changed files in force at once. A file that cannot be read then counts with what it had
 * last.
 * @throws the error of a file that cannot be read now
 */
export function tlsOptions({ caFile, certFile, keyFile }: ClientTlsFiles): ClientTlsOptions {
  const options = {};
  for (const [name, file] of Object.entries({ ca: caFile, cert: certFile, key: keyFile })) {
    if (file === undefined) continue;
    let last = readFileSync(file, "utf8");
    const get = () => {
      try {
        last = readFileSync(file, "utf8");
      } catch {}
      return last;
    };
    Object.defineProperty(options, name, { enumerable: true, get });
  }
  return options;
}
