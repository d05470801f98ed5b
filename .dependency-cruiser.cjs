/**
 * The arrows between the rooms (see ARCHITECTURE.md). What is not named may not be imported.
 * @type {import("dependency-cruiser").IConfiguration}
 */
const anyRoom = ["^src/(errors|loopback|request-id|secret|secret-fields)\\.ts$", "^src/gen/"];
const rooms = {
  tracing: [],
  upstream: ["ratelimit", "tracing"],
  ratelimit: ["redis"],
  events: ["redis", "seal", "sqlite", "tracing"],
  redis: [],
  sqlite: [],
  seal: [],
  intents: ["events", "redis", "sqlite"],
  reconcile: ["intents", "events", "upstream", "ratelimit", "tracing"],
  auth: [],
  callbacks: ["upstream", "events", "tracing"],
  core: ["upstream", "events", "intents", "auth", "ratelimit", "seal", "tracing"],
  limits: [],
  rpc: ["core", "auth", "ratelimit", "limits", "tracing"],
  graphql: ["core", "auth", "ratelimit", "limits", "tracing"],
  admin: ["limits"],
  demo: [],
  operator: [
    ...["admin", "auth", "callbacks", "core", "events", "graphql", "intents", "ratelimit"],
    ...["reconcile", "sandbox", "upstream"],
  ],
  sandbox: [],
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
        pathNot: ["^src/sandbox/", "^src/upstream/(wire|signature)", ...anyRoom],
      },
    },
    ...Object.entries(rooms)
      .filter(([room]) => room !== "sandbox")
      .map(([room, mayImport]) => ({
        name: `${room}-arrows`,
        severity: "error",
        from: { path: `^src/${room}/` },
        to: {
          path: "^src/",
          pathNot: [`^src/${room}/`, ...mayImport.map((other) => `^src/${other}/`), ...anyRoom],
        },
      })),
    {
      name: "config-arrows",
      comment: "it makes what the rooms ask for, and knows no more of them than its types",
      severity: "error",
      from: { path: "^src/config/" },
      to: {
        path: "^src/",
        pathNot: [
          "^src/(config|auth|tracing|upstream)/",
          "^src/(tls-files|version)\\.ts$",
          ...anyRoom,
        ],
      },
    },
    {
      name: "cli-arrows",
      comment: "commands use what the rooms have; only main starts a gateway",
      severity: "error",
      from: { path: "^src/cli/" },
      to: {
        path: "^src/",
        pathNot: [
          "^src/(cli|config|auth|redis|sandbox|upstream)/",
          "^src/(config|log|main)\\.ts$",
          "^src/graphql/(schema|trusted-documents)\\.ts$",
          "^src/ratelimit/local-bucket\\.ts$",
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
      name: "generated-code-stands-alone",
      severity: "error",
      from: { path: "^src/gen/" },
      to: { path: "^src/", pathNot: "^src/gen/" },
    },
    {
      name: "only-main-reads-the-gateway",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(main|cli)\\.ts$" },
      to: { path: "^src/gateway\\.ts$" },
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
