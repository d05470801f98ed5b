import type { Seal } from "../../../src/secrets/seal.ts";

/** Encrypts nothing, so that stored texts can be read. */
export const openSeal: Seal = {
  close: (text) => Buffer.from(text),
  open: (text) => Buffer.from(text),
};
