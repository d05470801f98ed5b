import type { ScenarioInfo } from "../src/admin/console-api.ts";
import { words } from "./format.ts";
import { capital } from "./parts.tsx";

/** A short title for a scenario. */
export function titleOf({ name, outcome, summary }: ScenarioInfo): string {
  const title = outcome === "success" || summary !== "Declined" ? name : outcome;
  return capital(words(title)).replace(/^3ds/, "3DS");
}

export function plainText(summary: string): string {
  return summary.replaceAll("`", "");
}
