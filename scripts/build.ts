/**
 * Builds `dist/`, which the image runs: the gateway and its packages in a few files, since opening
 * two thousand modules doubles the processor time of a start. It also contains the files that the
 * code reads by URL (Lua scripts, pages) and the licenses of the packages.
 *
 *   node scripts/build.ts [folder, default: dist]
 */
import { cpSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { dirname, join, relative, resolve } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { consolePackages } from "./build-console.ts";

const root = resolve(import.meta.dirname, "..");
const src = join(root, "src");
/** The folders of our own code. The files of `src` go to the top of `dist/`. */
const folders = ["src", "devtools", "sandbox"];
const dist = resolve(process.argv[2] ?? join(root, "dist"));

/** Modules that are started or loaded by URL. The first is the command line. */
const entryPoints = ["cli.ts", "stores/sqlite/thread.ts"];

rmSync(dist, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: entryPoints.map((name) => join(src, name)),
  outbase: src,
  outdir: dist,
  bundle: true,
  // So that each command loads only its own code, and threads share common code.
  splitting: true,
  // Less to read and to compile at each start. Names stay, for stack traces.
  minifySyntax: true,
  minifyWhitespace: true,
  platform: "node",
  format: "esm",
  target: "node22",
  sourcemap: true,
  sourcesContent: false,
  metafile: true,
  legalComments: "none",
  logLevel: "warning",
  // CommonJS packages call `require` for Node's own modules at run time.
  banner: {
    js: 'import { createRequire as requireBeside } from "node:module"; const require = requireBeside(import.meta.url);',
  },
  plugins: [ownAddresses(), mapsOfOwnCode(), httpWithoutFetch()],
});
for (const [file, { inputs }] of Object.entries(metafile.outputs)) {
  const ownAddress = Object.keys(inputs).some((input) => isOwn(input) && hasAddress(input));
  if (ownAddress && dirname(resolve(root, file)) !== dist)
    throw new Error(`${file} knows no address of its own`);
}
for (const file of globSync(`{${folders}}/**/*.{lua,html,css,js}`, { cwd: root })) {
  cpSync(join(root, file), join(dist, inDist(file)));
}
writeFileSync(join(dist, "third-party-licenses.txt"), licenses(metafile));

function isOwn(input: string): boolean {
  return folders.some((folder) => input.startsWith(`${folder}/`));
}

/** Where a file of our own would lie in `dist/` if it were not bundled. */
function inDist(file: string): string {
  return file.replace(/^src\//, "");
}

function hasAddress(input: string): boolean {
  return readFileSync(join(root, input), "utf8").includes("import.meta.url");
}

/** Bundles lie at the top of `dist/`: gives each module the `import.meta.url` it has unbundled. */
function ownAddresses(): Plugin {
  return {
    name: "own addresses",
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const file = relative(root, path);
        if (!isOwn(file)) return undefined;
        const address = `./${inDist(file).replace(/\.ts$/, ".js")}`;
        const contents = readFileSync(path, "utf8").replaceAll(
          "import.meta.url",
          `new URL(${JSON.stringify(address)}, import.meta.url).href`,
        );
        return { contents, loader: "ts" };
      });
    },
  };
}

/**
 * An `import` of `node:http` reads all its exports, and with them loads Node's own `fetch`: a tenth
 * of the start.
 */
function httpWithoutFetch(): Plugin {
  const plain = Object.entries(Object.getOwnPropertyDescriptors(http)).flatMap(([name, { get }]) =>
    get ? [] : [name],
  );
  const contents = `const http = process.getBuiltinModule("node:http");
    export default http;
    export const { ${plain.join(", ")} } = http;`;
  return {
    name: "http without fetch",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^(node:)?http$/ }, ({ kind, path }) =>
        kind === "require-call" ? { path, external: true } : { path, namespace: "node-http" },
      );
      onLoad({ filter: /./, namespace: "node-http" }, () => ({ contents, loader: "js" }));
    },
  };
}

/** Stack traces name lines of `src/`. Maps of packages too would take ten times as long to read. */
function mapsOfOwnCode(): Plugin {
  const none = Buffer.from('{"version":3,"sources":[""],"mappings":"A"}').toString("base64");
  return {
    name: "maps of own code",
    setup({ onLoad }) {
      onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, ({ path }) => ({
        contents: `${readFileSync(path, "utf8")}\n//# sourceMappingURL=data:application/json;base64,${none}`,
        loader: "default",
      }));
    },
  };
}

/** The license texts of the packages, which must be distributed with them. */
function licenses({ inputs }: Metafile): string {
  const folders = new Set([
    ...Object.keys(inputs).flatMap(
      (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [],
    ),
    ...consolePackages.map((name) => `node_modules/${name}`),
  ]);
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(root, folder, "package.json"), "utf8"),
    ) as Record<string, string>;
    const files = readdirSync(join(root, folder)).filter((file) =>
      /^(licen[cs]e|notice)/i.test(file),
    );
    const text = files.map((file) => readFileSync(join(root, folder, file), "utf8").trim());
    return [`${name} ${version}: ${license}`, ...text].join("\n\n");
  });
  // The code of these protos is inside, and the packages of Apache-2.0 come without its text.
  const apache = readFileSync(join(root, "third_party/LICENSE"), "utf8").trim();
  texts.push(`google/rpc, grpc, buf/validate: Apache-2.0\n\n${apache}`);
  return `${texts.join("\n\n---\n\n")}\n`;
}
