/**
 * The arrows between the rooms (see ARCHITECTURE.md). What is not named may not be imported.
 * @type {import("dependency-cruiser").IConfiguration}
 */
const anyRoom = ["^src/(errors|request-id|secret|secret-fields)\\.ts$", "^src/gen/"];
const rooms = {
  tracing: [],
  upstream: ["ratelimit", "tracing"],
  ratelimit: ["redis"],
  events: ["redis", "tracing"],
  redis: [],
  intents: ["events", "redis"],
  reconcile: ["intents", "events", "upstream", "ratelimit", "tracing"],
  auth: [],
  callbacks: ["upstream", "events", "tracing"],
  core: ["upstream", "events", "intents", "auth", "ratelimit", "tracing"],
  rpc: ["core", "auth", "ratelimit", "tracing"],
  graphql: ["core", "auth", "ratelimit", "tracing"],
  admin: [],
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
