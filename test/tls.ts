import { readFileSync } from "node:fs";

/** The path of a certificate or a key of the tests, which nobody else trusts. */
export const tlsFile = (name: string) => new URL(`fixtures/tls/${name}`, import.meta.url).pathname;

/** The text of such a file. */
export const tlsText = (name: string) => readFileSync(tlsFile(name), "utf8");

/** A certificate with its key. */
export const identityOf = (name: string) => ({
  ...{ cert: tlsText(`${name}.crt`), key: tlsText(`${name}.key`) },
});
