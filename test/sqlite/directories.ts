import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A fresh, empty directory, and what removes it. */
export function freshDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "payments-gateway-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
