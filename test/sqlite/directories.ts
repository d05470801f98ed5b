import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** In memory where there is such a place: what a sync of a disk costs is no part of a test. */
const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A fresh, empty directory, and what removes it. */
export function freshDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(base, "payments-gateway-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
