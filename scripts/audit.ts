/**
 * Asks the registry for known vulnerabilities of the packages that ship, and fails if one is of
 * level `high` or `critical`. Without an answer of the registry it fails nothing, but says so.
 *
 *   node scripts/audit.ts [options of `npm audit`]
 */
import { execFile } from "node:child_process";

interface Report {
  readonly metadata?: {
    readonly vulnerabilities: Readonly<Record<string, number>>;
    readonly dependencies: { readonly prod: number };
  };
  readonly vulnerabilities?: Readonly<Record<string, Vulnerability>>;
  readonly message?: string;
  readonly error?: { readonly summary: string };
}

interface Vulnerability {
  readonly severity: string;
  readonly range: string;
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

const args = [
  "audit",
  "--json",
  "--omit=dev",
  "--package-lock-only",
  "--fetch-retries=0",
  ...process.argv.slice(2),
];
const text = await new Promise<string>((resolve) => {
  execFile("npm", args, { timeout: 60_000, maxBuffer: 2 ** 26 }, (_error, stdout) =>
    resolve(stdout),
  );
});
const { metadata, vulnerabilities = {}, message, error } = reportOf(text);
if (metadata === undefined) {
  console.log(`not audited: ${message || error?.summary || "npm gave no report"}`);
} else {
  const found = Object.entries(vulnerabilities);
  for (const [name, { severity, range, via }] of found) {
    const what = via.map((one) => (typeof one === "string" ? one : `${one.title} (${one.url})`));
    console.log(`${severity}: ${name} ${range}: ${what.join("; ")}`);
  }
  console.log(
    `audited: ${metadata.dependencies.prod} packages that ship, ${found.length} with a known vulnerability`,
  );
  if (found.some(([, { severity }]) => ["high", "critical"].includes(severity))) {
    process.exitCode = 1;
  }
}

function reportOf(text: string): Report {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
