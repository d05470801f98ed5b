/**
 * The arrows between the rooms (see ARCHITECTURE.md). What is not named may not be imported.
 * @type {import("dependency-cruiser").IConfiguration}
 */
const anyRoom = [
  "^src/(errors|kinds)\\.ts$",
  "^src/secrets/",
  "^src/gen/",
  "^src/telemetry/tracing/",
];
const rooms = {
  secrets: [],
  wire: [],
  net: [],
  redis: [],
  sqlite: [],
  auth: [],
  upstream: ["ratelimit", "wire"],
  ratelimit: ["redis"],
  events: ["redis", "sqlite"],
  intents: ["events", "redis", "sqlite"],
  reconcile: ["intents", "events", "upstream", "ratelimit"],
  callbacks: ["wire", "events", "net/request-id"],
  core: ["upstream", "events", "intents", "auth", "ratelimit"],
  rpc: ["core", "auth", "ratelimit", "net"],
  graphql: ["core", "auth", "ratelimit", "net"],
  admin: [
    ...["auth", "callbacks", "core", "events", "graphql", "intents", "net", "ratelimit"],
    ...["reconcile", "sandbox", "telemetry", "upstream", "wire"],
  ],
};

module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    {
      name: "sandbox-shares-only-the-dialect",
      comment:
        "the emulator is a second opinion of the upstream: it shares codec and signature only",
      severity: "error",
      from: { path: "^src/sandbox/" },
      to: {
        path: "^src/",
        pathNot: ["^src/sandbox/", "^src/wire/", ...anyRoom],
      },
    },
    ...Object.entries(rooms).map(([room, mayImport]) => ({
      name: `${room}-arrows`,
      severity: "error",
      from: { path: `^src/${room}/` },
      to: {
        path: "^src/",
        pathNot: [`^src/${room}/`, ...mayImport.map((other) => `^src/${other}[/.]`), ...anyRoom],
      },
    })),
    {
      name: "tracing-stands-alone",
      severity: "error",
      from: { path: "^src/telemetry/tracing/" },
      to: { path: "^src/", pathNot: ["^src/telemetry/tracing/", ...anyRoom] },
    },
    {
      name: "only-app-joins-telemetry",
      comment: "rooms tell observers of their own; metrics and log records are made of that here",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(app/|telemetry/|admin/|cli(/|\\.ts$))" },
      to: {
        path: "^src/telemetry/",
        pathNot: "^src/telemetry/(tracing/|durations/settings\\.ts$)",
      },
    },
    {
      name: "config-arrows",
      comment: "it makes what the rooms ask for, and knows no more of them than its types",
      severity: "error",
      from: { path: "^src/config/" },
      to: {
        path: "^src/",
        pathNot: [
          ...["^src/(config|auth|net|upstream)/", "^src/version\\.ts$"],
          ...["^src/telemetry/durations/settings\\.ts$", ...anyRoom],
        ],
      },
    },
    {
      name: "cli-arrows",
      comment: "commands use what the rooms have; only app/serve.ts starts a gateway",
      severity: "error",
      from: { path: "^src/cli/" },
      to: {
        path: "^src/",
        pathNot: [
          "^src/(cli|config|auth|net|redis|sandbox|sqlite|upstream|wire)/",
          "^src/(admin/dead-letter|app/(move|serve)|telemetry/log(gable)?)\\.ts$",
          "^src/graphql/(schema/schema|trusted-documents)\\.ts$",
          "^src/ratelimit/local/bucket\\.ts$",
          ...anyRoom,
        ],
      },
    },
    {
      name: "nobody-imports-commands",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/cli(/|\\.ts$)" },
      to: { path: "^src/cli(/|\\.ts$)" },
    },
    {
      name: "nobody-imports-app",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(app/|cli(/|\\.ts$))" },
      to: { path: "^src/app/" },
    },
    {
      name: "generated-code-stands-alone",
      severity: "error",
      from: { path: "^src/gen/" },
      to: { path: "^src/", pathNot: "^src/gen/" },
    },
    {
      name: "only-serve-starts-the-gateway",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(app/serve|cli)\\.ts$" },
      to: { path: "^src/app/gateway\\.ts$" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    parser: "swc",
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      extensions: [".ts", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node"],
    },
  },
};
