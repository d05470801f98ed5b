/**
 * Checks which room (folder of `src`) imports which, by the rules in ARCHITECTURE.md, and that no
 * modules import each other in a circle. Type imports count. An import that no rule names is an
 * error.
 *
 *   node scripts/arrows.ts [folder that has src]
 */
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

interface Rule {
  /** Printed with each import that breaks the rule. */
  readonly name: string;
  readonly from: RegExp;
  /** Path prefixes in `src` that those modules may import. */
  readonly mayImport: readonly string[];
}

const anyRoom = ["errors.ts", "model/", "collections/", "secrets/", "gen/", "telemetry/tracing/"];

/** The rooms of `src`, with what each may import besides itself and `anyRoom`. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  model: [],
  collections: [],
  secrets: [],
  wire: ["net/bounded-json.ts", "net/intake-limits.ts"],
  net: [],
  redis: [],
  sqlite: [],
  auth: [],
  upstream: ["ratelimit/", "wire/", "net/growing-buffer.ts"],
  ratelimit: ["redis/"],
  events: ["redis/", "sqlite/"],
  intents: ["events/", "redis/", "sqlite/"],
  reconcile: ["intents/", "events/", "upstream/", "ratelimit/"],
  callbacks: ["wire/", "events/", "net/"],
  core: ["upstream/", "events/", "intents/", "auth/", "ratelimit/"],
  rpc: ["core/", "auth/", "ratelimit/", "net/"],
  graphql: ["core/", "auth/", "ratelimit/", "net/"],
  admin: [
    ...["auth/", "callbacks/", "core/", "events/", "graphql/", "intents/", "net/", "ratelimit/"],
    ...["reconcile/", "sandbox/", "telemetry/", "upstream/", "wire/"],
  ],
  // Emulates the upstream independently of the gateway: it shares only codec and signature.
  sandbox: ["wire/"],
  "telemetry/tracing": [],
  // Config makes the options of these rooms: it imports their types, `isLoopback` and `version`.
  config: ["auth/", "net/", "upstream/", "version.ts", "telemetry/durations/settings.ts"],
  cli: [
    ...["config/", "auth/", "net/", "redis/", "sandbox/", "sqlite/", "upstream/", "wire/"],
    ...["admin/dead-letter", "app/listening.ts", "app/move.ts", "app/serve.ts", "telemetry/log"],
    ...["graphql/schema/schema.ts", "graphql/trusted-documents.ts", "ratelimit/queued-bucket.ts"],
  ],
};

const rules: readonly Rule[] = [
  ...Object.entries(rooms).map(([room, mayImport]) => ({
    name: `what ${room} imports`,
    from: new RegExp(`^${room}/`),
    mayImport: [`${room}/`, ...mayImport, ...anyRoom],
  })),
  { name: "generated code stands alone", from: /^gen\//, mayImport: ["gen/"] },
];

/** Modules that only the modules in `from` may import. */
const closed: readonly { readonly name: string; readonly to: RegExp; readonly from: RegExp }[] = [
  {
    // Other rooms report to their own observer interfaces; telemetry turns that into metrics and
    // logs.
    name: "only app, admin and commands import telemetry",
    to: /^telemetry\/(?!tracing\/|durations\/settings\.ts$)/,
    from: /^(app\/|telemetry\/|admin\/|cli(\/|\.ts$))/,
  },
  { name: "nobody imports commands", to: /^cli(\/|\.ts$)/, from: /^cli(\/|\.ts$)/ },
  { name: "nobody imports app", to: /^app\//, from: /^(app\/|cli(\/|\.ts$))/ },
  { name: "only serve starts the gateway", to: /^app\/gateway\.ts$/, from: /^app\/serve\.ts$/ },
];

const root = join(process.argv[2] ?? ".", "src");
const modules = globSync("**/*.{ts,tsx}", { cwd: root }).sort();
const importsOf = new Map(modules.map((module) => [module, readImports(module)]));

const broken = [...importsOf].flatMap(([from, imports]) =>
  imports.flatMap((to) => brokenRules(from, to).map((name) => `${from} -> ${to} (${name})`)),
);
broken.push(...circles().map((circle) => `${circle.join(" -> ")} (a circle)`));
for (const line of broken) console.error(line);
if (broken.length > 0) process.exitCode = 1;
else console.log(`${modules.length} modules of src keep to the arrows`);

function readImports(module: string): string[] {
  const text = readFileSync(join(root, module), "utf8");
  const found = [
    ...text.matchAll(/^(?:import|export)\s[^;"]*?from "(\.[^"]+)"/gm),
    ...text.matchAll(/^import "(\.[^"]+)"/gm),
    ...text.matchAll(/\bimport\("(\.[^"]+)"\)/g),
  ];
  const paths = found.map(([, path]) => posix.join(posix.dirname(module), path!));
  return [...new Set(paths)].filter((path) => !path.startsWith("../"));
}

function brokenRules(from: string, to: string): string[] {
  const open = rules.filter(
    (rule) => rule.from.test(from) && !rule.mayImport.some((path) => to.startsWith(path)),
  );
  const shut = closed.filter((rule) => rule.to.test(to) && !rule.from.test(from));
  return [...open, ...shut].map(({ name }) => name);
}

/** Import circles, found by depth-first search; each begins and ends with the same module. */
function circles(): string[][] {
  const found: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const walk = (module: string): void => {
    if (done.has(module)) return;
    const begins = path.indexOf(module);
    if (begins >= 0) {
      found.push([...path.slice(begins), module]);
      return;
    }
    path.push(module);
    for (const next of importsOf.get(module) ?? []) walk(next);
    path.pop();
    done.add(module);
  };
  for (const module of modules) walk(module);
  return found;
}
