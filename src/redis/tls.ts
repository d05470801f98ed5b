import { readFileSync } from "node:fs";

/** Files for TLS with Redis: whom to trust, and what a server that asks for a certificate gets. */
export interface RedisTlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/**
 * The options of a TLS connection. The driver reads them each time it connects, so that changed
 * files are in force for new connections. A file that cannot be read then counts with what it had
 * last.
 */
export function tlsOptions({ caFile, certFile, keyFile }: RedisTlsFiles) {
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
