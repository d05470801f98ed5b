/**
 * The arrows between the rooms (see ARCHITECTURE.md). What is not named may not be imported.
 * @type {import("dependency-cruiser").IConfiguration}
 */
const anyRoom = ["^src/(errors|secret|secret-fields)\\.ts$", "^src/gen/"];
const rooms = {
  upstream: ["ratelimit"],
  ratelimit: ["redis"],
  events: ["redis"],
  redis: [],
  intents: ["events", "redis"],
  reconcile: ["intents", "events", "upstream", "ratelimit"],
  auth: [],
  callbacks: ["upstream", "events"],
  core: ["upstream", "events", "intents", "auth", "ratelimit"],
  limits: [],
  rpc: ["core", "auth", "ratelimit", "limits"],
  graphql: ["core", "auth", "ratelimit", "limits"],
  admin: ["limits"],
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
