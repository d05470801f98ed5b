import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import type { Defect } from "./defects.ts";

type Simulation = typeof import("./run.ts");

const root = new URL("../../", import.meta.url).href;
const planted: Defect[] = [];
/** The defects whose file was loaded, by their place in `planted`; a planted script adds itself. */
const loaded = new Set<number>();
const loadedKey = Symbol.for("payments-gateway.simulation.loaded");
Object.assign(globalThis, { [loadedKey]: loaded });

/**
 * Loads the simulation of the code with a defect in it, beside the code without it.
 * @throws Error unless the text to replace occurs exactly once, in a file that the simulation loads
 * anew
 */
export async function planting(defect: Defect): Promise<Simulation> {
  const { name, file } = defect;
  textWith(defect);
  if (!mayDiffer(`${root}src/${file}`)) {
    throw new Error(`${name}: ${file} is loaded once for all, so nothing can be planted into it`);
  }
  if (planted.length === 0) registerHooks({ resolve, load });
  const n = planted.push(defect) - 1;
  const simulation: Simulation = await import(`./run.ts?defect=${n}`);
  if (!loaded.has(n)) await Promise.all(Object.values(simulation.forms).map(({ load }) => load()));
  if (!loaded.has(n)) throw new Error(`${name}: the simulation does not load ${file}`);
  return simulation;
}

/**
 * A module with a defect's variant imports the same variant of the modules that load the defect,
 * directly or not. All variants share the others.
 */
const resolve: NonNullable<Parameters<typeof registerHooks>[0]["resolve"]> = (
  specifier,
  context,
  next,
) => {
  const resolved = next(specifier, context);
  const [, variant] = /\?defect=(\d+)$/.exec(context.parentURL ?? "") ?? [];
  const defect = planted[Number(variant)];
  if (!defect || !mayDiffer(resolved.url) || !loaders(defect).has(resolved.url)) return resolved;
  return { ...resolved, url: `${resolved.url}?defect=${variant}` };
};

const load: NonNullable<Parameters<typeof registerHooks>[0]["load"]> = (url, context, next) => {
  const [, own, variant] = /^(.*)\?defect=(\d+)$/.exec(url) ?? [];
  const defect = planted[Number(variant)];
  if (own === undefined || !defect) return next(url, context);
  const loadedAs = (source: string) => ({ format: "module", source, shortCircuit: true });
  if (own === `${root}src/${defect.file}`) {
    loaded.add(Number(variant));
    return loadedAs(stripTypeScriptTypes(textWith(defect)));
  }
  const text = textOf(own);
  if (own !== `${root}src/redis/script.ts` || !defect.file.endsWith(".lua")) return loadedAs(text);
  // A Lua script is read when the module that runs it is loaded.
  const reading = 'readFileSync(file, "utf8")';
  if (!text.includes(reading)) throw new Error(`${defect.name}: scripts are read otherwise`);
  const isPlanted = `file.pathname.endsWith(${JSON.stringify(`/src/${defect.file}`)})`;
  const marks = `globalThis[Symbol.for(${JSON.stringify(loadedKey.description)})].add(${variant})`;
  const script = JSON.stringify(textWith(defect));
  return loadedAs(
    text.replace(reading, () => `(${isPlanted} ? (${marks}, ${script}) : ${reading})`),
  );
};

/** The modules without their types. All variants load them, and to strip them takes the longest. */
const texts = new Map<string, string>();

function textOf(url: string): string {
  const known = texts.get(url);
  if (known !== undefined) return known;
  const text = stripTypeScriptTypes(readFileSync(new URL(url), "utf8"));
  texts.set(url, text);
  return text;
}

const run = new URL("run.ts", import.meta.url).href;
const loadersOf = new Map<string, ReadonlySet<string>>();

/** The modules of the simulation that load the defect's file, among them that file. */
function loaders({ file }: Defect): ReadonlySet<string> {
  const known = loadersOf.get(file);
  if (known) return known;
  const found = new Set([`${root}src/${file.endsWith(".lua") ? "redis/script.ts" : file}`]);
  for (const url of found) for (const importer of importers().get(url) ?? []) found.add(importer);
  loadersOf.set(file, found);
  return found;
}

let importersOf: Map<string, string[]> | undefined;
/** Statements that load no module. */
const onlyTypes = /^(?:import|export) type [^;]*;/gm;

/** For each module of the simulation those that import it. */
function importers(): ReadonlyMap<string, readonly string[]> {
  if (importersOf) return importersOf;
  importersOf = new Map([[run, []]]);
  for (const importer of importersOf.keys()) {
    const code = readFileSync(new URL(importer), "utf8").replace(onlyTypes, "");
    for (const [, specifier = ""] of code.matchAll(/\b(?:from|import)[ (]"(\.[^"]+)"/g)) {
      const url = new URL(specifier, importer).href;
      if (!url.endsWith(".ts")) continue;
      importersOf.set(url, [...(importersOf.get(url) ?? []), importer]);
    }
  }
  return importersOf;
}

function mayDiffer(url: string): boolean {
  if (url.includes("?") || !url.startsWith(root)) return false;
  const path = url.slice(root.length);
  return path.startsWith("src/")
    ? !/^src\/(gen\/|secrets\/|wire\/|errors\.ts|kinds\.ts)/.test(path)
    : path.startsWith("test/simulation/") &&
        !/\/(scheduler|random|merchant|real-redis)\.ts$/.test(path);
}

function textWith({ file, line, instead, name }: Defect): string {
  const source = readFileSync(new URL(`src/${file}`, root), "utf8");
  const places = source.split(line).length - 1;
  if (places === 1) return source.replace(line, () => instead);
  throw new Error(`${name}: ${file} has ${places} times what is to be replaced: ${line}`);
}
