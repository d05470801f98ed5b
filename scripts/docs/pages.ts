import { globSync } from "node:fs";
import { join } from "node:path";

/** Every page of the documentation that a reader may open, by its path from the root. */
export function pages(): string[] {
  return globSync("{*,{clients,devtools,docs,examples,sandbox}/**/*}.md", {
    cwd: join(import.meta.dirname, "../.."),
    exclude: ["**/node_modules/**"],
  }).sort();
}
