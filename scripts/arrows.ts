/**
 * Checks which room (folder of `src`) and which package beside it imports which, by the rules in
 * ARCHITECTURE.md, and that no modules import each other in a circle. Type imports count. An import
 * that no rule names is an error.
 *
 *   node scripts/arrows.ts [folder that has src]
 */
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

interface Rule {
  /** Printed with each import that breaks the rule. */
  readonly name: string;
  readonly from: RegExp;
  /** Path prefixes that those modules may import; paths of rooms are those in `src`. */
  readonly mayImport: readonly string[];
}

const anyRoom = [
  ...["errors.ts", "report.ts", "model/", "collections/", "secrets/", "gen/"],
  "telemetry/tracing/",
];

/** The rooms of `src`, with what each may import besides itself and `anyRoom`. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  model: [],
  collections: [],
  secrets: [],
  wire: ["net/bounded-json.ts", "net/intake-limits.ts", "net/json.ts"],
  net: [],
  redis: ["net/address-text.ts", "net/client-tls.ts", "net/system-errors.ts", "net/timer.ts"],
  auth: ["net/reloaded-files.ts", "net/system-errors.ts"],
  upstream: [
    ...["ratelimit/", "wire/"],
    ...[
      "net/growing-buffer.ts",
      "net/memory-budget.ts",
      "net/intake-limits.ts",
      "net/spread-over-turns.ts",
      "net/system-errors.ts",
      "net/timer.ts",
    ],
  ],
  ratelimit: ["redis/"],
  stores: ["redis/", "net/timer.ts"],
  ledger: ["stores/", "net/spread-over-turns.ts", "net/timer.ts"],
  reconcile: ["ledger/", "upstream/", "ratelimit/", "net/timer.ts"],
  callbacks: ["wire/", "ledger/", "net/"],
  live: [],
  core: ["live/", "upstream/", "ledger/", "stores/cursor.ts", "auth/", "ratelimit/"],
  rpc: ["live/", "core/", "auth/", "ratelimit/", "net/", "upstream/user-message.ts"],
  graphql: ["live/", "core/", "auth/", "ratelimit/", "net/", "upstream/user-message.ts"],
  admin: [
    ...["auth/", "callbacks/", "core/", "graphql/", "ledger/", "net/", "upstream/", "wire/"],
    "stores/cursor.ts",
  ],
  "telemetry/tracing": ["version.ts"],
  // Config makes the options of these rooms: it imports their types, `isLoopback` and `version`,
  // and what reads REDIS_URL.
  config: ["auth/", "model/payout-statuses.ts", "net/", "redis/url.ts", "version.ts"],
  cli: [
    ...[
      "config/",
      "auth/",
      "net/",
      "redis/",
      "ledger/calls.ts",
      "stores/redis/import.ts",
      "stores/sqlite/",
      "upstream/",
      "telemetry/log",
    ],
    ...["admin/console-api.ts", "app/check-files.ts", "app/emulator.ts", "app/serve.ts"],
    "ratelimit/queued-bucket.ts",
    "devtools/",
    "version.ts",
  ],
};

/** The packages beside `src`, with all that each may import besides itself. */
const packages: Readonly<Record<string, readonly string[]>> = {
  // Emulates the upstream independently of the gateway. `wire` takes passwords as a `Secret`, and
  // one list says what to mask: also in the sandbox's journal.
  sandbox: ["wire/", "gen/", "secrets/"],
  devtools: [
    ...["wire/", "gen/", "secrets/", "sandbox/"],
    // The names of the kinds in options and output, and words of the service that are no enum's.
    "model/",
    // `trigger` refuses what `isLoopback` does not know as this machine.
    "net/loopback.ts",
    // What all commands share: exit codes, output, options, and the client of a gateway.
    ...["command-error", "gateway-client", "gateway-options", "reach", "terminal"].map(
      (name) => `cli/${name}.ts`,
    ),
    // The password that callbacks are signed with, and the sandbox's credentials.
    "config/",
  ],
};

const rules: readonly Rule[] = [
  ...Object.entries(rooms).map(([room, mayImport]) => ({
    name: `what ${room} imports`,
    from: new RegExp(`^${room}/`),
    mayImport: [`${room}/`, ...mayImport, ...anyRoom],
  })),
  ...Object.entries(packages).map(([name, mayImport]) => ({
    name: `what ${name} imports`,
    from: new RegExp(`^${name}/`),
    mayImport: [`${name}/`, ...mayImport],
  })),
  { name: "generated code stands alone", from: /^gen\//, mayImport: ["gen/"] },
];

/** Modules that only the modules in `from` may import. */
const closed: readonly { readonly name: string; readonly to: RegExp; readonly from: RegExp }[] = [
  {
    // Other rooms report facts (report.ts); telemetry turns them into metrics and logs.
    name: "only app and commands import telemetry",
    to: /^telemetry\/(?!tracing\/)/,
    from: /^(app\/|telemetry\/|cli(\/|\.ts$))/,
  },
  { name: "nobody imports commands", to: /^cli(\/|\.ts$)/, from: /^(devtools\/|cli(\/|\.ts$))/ },
  {
    name: "only app/emulator.ts loads the sandbox",
    to: /^sandbox\//,
    from: /^(app\/emulator\.ts$|sandbox\/|devtools\/)/,
  },
  {
    name: "only cli/program.ts loads devtools",
    to: /^devtools\//,
    from: /^(cli\/program\.ts$|devtools\/)/,
  },
  { name: "nobody imports app", to: /^app\//, from: /^(app\/|cli(\/|\.ts$))/ },
  { name: "only serve starts the gateway", to: /^app\/gateway\.ts$/, from: /^app\/serve\.ts$/ },
];

const scope = "@payments-gateway/";

const root = process.argv[2] ?? ".";
const files = globSync(`{src,${Object.keys(packages)}}/**/*.{ts,tsx}`, {
  cwd: root,
  exclude: ["*/test/**"],
}).sort();
const importsOf = new Map(files.map((file) => [moduleOf(file), readImports(file)]));

const broken = [...importsOf].flatMap(([from, imports]) =>
  imports.flatMap((to) => brokenRules(from, to).map((name) => `${from} -> ${to} (${name})`)),
);
broken.push(...circles().map((circle) => `${circle.join(" -> ")} (a circle)`));
for (const line of broken) console.error(line);
if (broken.length > 0) process.exitCode = 1;
else console.log(`${files.length} modules keep to the arrows`);

/** The path of a module as the rules name it. */
function moduleOf(file: string): string {
  return file.replace(/^src\//, "");
}

/** The modules that a file imports by path, and by the name of a package of this repository. */
function readImports(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const found = [
    ...text.matchAll(/^(?:import|export)\s[^;"]*?from "([^"]+)"/gm),
    ...text.matchAll(/^import "([^"]+)"/gm),
    ...text.matchAll(/\bimport\("([^"]+)"\)/g),
  ];
  const paths = found.flatMap(([, name = ""]) => {
    if (name.startsWith(".")) return moduleOf(posix.join(posix.dirname(file), name));
    return name.startsWith(scope) ? `${name.slice(scope.length)}/` : [];
  });
  return [...new Set(paths)];
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
  for (const module of importsOf.keys()) walk(module);
  return found;
}
